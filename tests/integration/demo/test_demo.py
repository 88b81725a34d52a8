"""`midwatch demo` as a newcomer starts it, whole and with a part broken."""

from __future__ import annotations

import getpass
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.picture import README, block_of, kinds, shortened
from embedded_stack import variables_of
from midwatch.agents.local.demo.judge import read_ledger
from midwatch.agents.local.embedded.stack import Endpoints
from processes import working_in

# `docs/design.md`, Replay says what the stream says; the file's folder is the caller's.
COMPARED = ("error_type", "family", "subsystem", "transient", "root_line", "root_line_number", "rank", "step")


def _begin(directory: Path, *options: str, **services: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-P", "-m", "midwatch", "demo", f"--directory={directory}", *options]
    return subprocess.Popen(
        command,
        cwd=directory.parent,
        env=os.environ | services,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _end(begun: subprocess.Popen[str]) -> tuple[int, str]:
    try:
        said, _ = begun.communicate(timeout=300)
    finally:
        begun.terminate()
    return begun.returncode, said


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, str]:
    """Its directory, its exit code and all that it said."""
    directory = tmp_path_factory.mktemp("demo") / "work"
    return directory, *_end(_begin(directory, "--patience=150"))


@pytest.mark.capability("C-1", "C-2", "C-3", "C-5", "X-38", "C-4")
def test_it_shows_a_rescue_a_finding_and_a_refusal(shown: tuple[Path, int, str]) -> None:
    directory, code, told = shown
    assert code == 0, told
    ledger = read_ledger((directory / "checkpoints" / "ledger.jsonl").read_text())
    assert [start.first_step for start in ledger.starts] == [1, 41]
    for said in (
        "nccl_timeout",
        "oom",
        "loss",
        "line → incident",
        "restart → done, attempt 1 of ",
        "would fail again",
        str(directory / "logs"),
    ):
        assert said in told
    assert not [line for line in told.splitlines() if line.startswith("FAIL")]


def test_the_readme_shows_such_a_transcript(shown: tuple[Path, int, str]) -> None:
    """Another run has other times, process ids and steps lost, and the same lines."""
    lines = shortened(shown[2], getpass.getuser())
    assert set(kinds(lines)) == set(kinds(block_of(README.read_text())))


def test_it_leaves_no_process_behind(shown: tuple[Path, int, str]) -> None:
    assert working_in(shown[0].parent) == []


@pytest.mark.parametrize(("attempt", "action"), [(1, "restart"), (2, "stop")])
def test_replay_says_the_same_of_its_logs(
    shown: tuple[Path, int, str], tmp_path: Path, attempt: int, action: str
) -> None:
    """The lines of each attempt through `midwatch replay` against what the stream said of it."""
    directory, code, _ = shown
    assert code == 0
    streamed: dict[str, Any] = json.loads((directory / "verdicts.json").read_text())[str(attempt)]
    command = [sys.executable, "-P", "-m", "midwatch", "replay", "--json"]
    logs = directory / "logs" if attempt == 2 else _before_the_second_start(directory, tmp_path)
    replayed = json.loads(
        subprocess.run([*command, str(logs)], capture_output=True, text=True, check=False, timeout=60).stdout
    )
    root = Path(replayed["verdict"].pop("root_file"))
    assert root.name == Path(streamed.pop("root_file")).name
    assert {f: replayed["verdict"][f] for f in COMPARED} == {f: streamed[f] for f in COMPARED}
    assert replayed["decision"]["action"] == action


def _before_the_second_start(directory: Path, copy: Path) -> Path:
    """The logs as the first attempt left them, by the training's own word of their sizes."""
    starts = [
        json.loads(line) for line in (directory / "checkpoints" / "ledger.jsonl").read_text().splitlines()
    ]
    sizes = [event for event in starts if event["event"] == "start"][1]["logged"]
    assert len(sizes) == 8
    for name, size in sizes.items():
        (copy / name).write_bytes((directory / "logs" / name).read_bytes()[:size])
    return copy


BROKEN = {
    "nccl-rule": "attempt 1 died of an NCCL timeout",
    "executor": "it was restarted once",
    # A Redis that came back may serve detect once before it is stopped again. The restart needs it later too.
    "redis": "it was restarted once",
}


@pytest.fixture(scope="module")
def broken(
    stack: Endpoints, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, tuple[Path, subprocess.Popen[str]]]]:
    """By its broken part, each demo and where it works. Side by side, for they mostly wait for the fact."""
    begun: dict[str, tuple[Path, subprocess.Popen[str]]] = {}
    for part in BROKEN:
        place = tmp_path_factory.mktemp(part)
        services = {} if part == "redis" else variables_of(stack)  # the Redis that it stops is its own
        options = (f"--without={part}", "--patience=25")
        begun[part] = place, _begin(place / "work", *options, **services)
    yield begun
    for _, demo in begun.values():
        demo.terminate()


@pytest.mark.parametrize(("part", "fact"), BROKEN.items())
def test_with_a_part_broken_it_says_which_fact_failed(
    broken: dict[str, tuple[Path, subprocess.Popen[str]]], part: str, fact: str
) -> None:
    place, demo = broken[part]
    code, told = _end(demo)
    assert code == 1, told
    failed = [line for line in told.splitlines() if line.startswith("FAIL")]
    assert any(fact in line for line in failed), told
    assert working_in(place) == []
