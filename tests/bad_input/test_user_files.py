"""Settings, rules and policies as people write them: every mistake is told with its place, and nothing runs
on half of a file."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest

from bad_input.case import Case, ids
from midwatch.agents.cli import run

GOOD = b"version: 1\nrules:\n  - {name: mine, pattern: 'it broke', role: cause, error_type: exception}\n"
DEEP = b"a: " + b"[" * 3000 + b"]" * 3000 + b"\n"
BOMB = b"a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"

SETTINGS = (
    Case("a file that cannot be read", "the settings file cannot be read", "", "exit code 3", None),
    Case("broken YAML", "midwatch.yaml:2:1: not valid YAML", "", "exit code 3", b"kafka: [\n"),
    Case("an unknown key", "unknown key 'kafaka'", "", "exit code 3", b"kafaka: {}\n"),
    Case("a duration without its unit", "has no unit", "", "exit code 3", b"ship: {interval: 5}\n"),
    Case("the same key twice", "appears twice in one", "", "exit code 3", b"cluster: a\ncluster: b\n"),
    Case("an alias", "alias", "", "exit code 3", BOMB),
    Case("3,000 levels", "deep", "", "exit code 3", DEEP),
    Case("bytes that are no UTF-8", "UTF-8", "", "exit code 3", b"cluster: \xff\xfe\n"),
    Case("a NUL", "midwatch.yaml:1:", "", "exit code 3", b"cluster: a\x00b\n"),
    Case("a list where a section is due", "midwatch.yaml:1:", "", "exit code 3", b"- kafka\n"),
    Case("a secret in the open", "a secret does not belong in a settings file", "", "exit code 3",
         b"kafka: {password: hunter2}\n"),
    Case("a foreign shipper that nobody knows", "is not a known value", "", "exit code 3",
         b"foreign: {shipper: pigeon}\n"),
    Case("more than a settings file may hold", "20000003 bytes, more than", "", "exit code 3",
         b"# " + b"x" * 20_000_000 + b"\n"),
)  # fmt: skip

RULES = (
    Case("broken YAML", "mine.yaml:3:1: not valid YAML", "", "exit code 3", b"version: 1\nrules: [\n"),
    Case("a pattern that is none", "missing", "", "exit code 3", GOOD.replace(b"it broke", b"it (broke")),
    Case("a key that no rule has", "patern", "", "exit code 3", GOOD.replace(b"pattern", b"patern")),
    Case("an alias", "alias", "", "exit code 3", BOMB),
    Case("3,000 levels", "deep", "", "exit code 3", DEEP),
    Case("bytes that are no UTF-8", "UTF-8", "", "exit code 3", GOOD.replace(b"mine", b"m\xffne")),
    Case("a look-behind, which RE2 has not", "mine.yaml:3:", "", "exit code 3",
         GOOD.replace(b"it broke", b"(?<=it )broke")),
    Case("a program of a thousand repetitions of a thousand", "mine.yaml:3:", "", "exit code 3",
         GOOD.replace(b"it broke", b"((x{1000}){1000})")),
    Case("an example that the rule does not match", "mine.yaml:", "", "exit code 3",
         GOOD.replace(b"error_type", b"match: ['all is well'], error_type")),
)  # fmt: skip


def _run(*arguments: str) -> tuple[int, str]:
    """The command as a person runs it: its exit code, and all that it said."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        return run(arguments), said.getvalue()


def _assert_told(told: str, case: Case) -> None:
    assert case.said in told, told[:2000]
    assert "Traceback" not in told
    assert len(told) < 20_000
    assert all(line.isprintable() for line in told.splitlines())


@pytest.mark.parametrize("case", SETTINGS, ids=ids(SETTINGS))
def test_settings_that_are_wrong_are_told_with_their_place_and_exit_code_3(
    case: Case, tmp_path: Path
) -> None:
    file = tmp_path / "midwatch.yaml"
    if isinstance(case.value, bytes):
        file.write_bytes(case.value)
    code, told = _run("jobs", "--config", str(file))
    assert code == 3
    _assert_told(told, case)
    assert "hunter2" not in told


@pytest.mark.parametrize("case", RULES, ids=ids(RULES))
def test_rules_that_are_wrong_are_told_with_their_place_and_the_shipped_ones_still_work(
    case: Case, tmp_path: Path
) -> None:
    file, log = tmp_path / "mine.yaml", tmp_path / "a.log"
    assert isinstance(case.value, bytes)
    file.write_bytes(case.value)
    log.write_text("torch.OutOfMemoryError: CUDA out of memory.\n")
    code, told = _run("replay", str(log), "--rules", str(file))
    assert code == 3
    _assert_told(told, case)
    assert _run("replay", str(log))[0] == 1


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"rules: [\n", "policy.yaml:2:1:"),
        (b"name: x\nsurprise: 1\n", "surprise"),
        (BOMB, "alias"),
        (DEEP, "deep"),
    ],
    ids=["broken YAML", "an unknown key", "an alias", "3,000 levels"],
)
def test_a_policy_that_is_wrong_is_told_with_its_place(content: bytes, word: str, tmp_path: Path) -> None:
    file, log = tmp_path / "policy.yaml", tmp_path / "a.log"
    file.write_bytes(content)
    log.write_text("fine\n")
    code, told = _run("replay", str(log), "--policy", str(file))
    assert code == 3
    assert word in told
    assert "Traceback" not in told


@pytest.mark.parametrize("what", ["absent", "directory of nothing", "bytes"])
def test_replay_says_what_it_cannot_read_and_never_more(what: str, tmp_path: Path) -> None:
    path = tmp_path / "log"
    if what == "directory of nothing":
        path.mkdir()
    elif what == "bytes":
        path.write_bytes(bytes(range(256)) * 1000)
    code, told = _run("replay", str(path))
    assert code == (0 if what == "directory of nothing" else 2), told
    assert "Traceback" not in told


def test_a_labelled_file_of_broken_lines_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    for content in (b"\xff\xfe\n", b"{\n", b"[" * 100_000 + b"\n"):
        path.write_bytes(content)
        code, told = _run("rules", "score", str(path))
        assert code in (2, 3), told
        assert f"{path}:1" in told
