"""Rules over whole tracebacks: what they are asked of, what they say, and what they cost other lines."""

from __future__ import annotations

import pytest

from midwatch.rules.errors import RuleErrors
from midwatch.rules.files.rule_reader import read_rules
from midwatch.rules.files.writer import rules_text
from midwatch.rules.matching.compiler import compile_rules
from midwatch.rules.matching.hits import Match
from midwatch.rules.matching.inspection import bench_text
from midwatch.rules.model import BlockKind, Rule


def rule(pattern: str, **fields: object) -> Rule:
    return Rule(name="b", pattern=pattern, block=BlockKind.TRACEBACK, error_type="data", **fields)  # type: ignore[arg-type]  # a test names only fields that exist


def found(pattern: str, text: str, **fields: object) -> list[Match]:
    return compile_rules([rule(pattern, **fields)]).match_blocks(text.encode("utf-8", "surrogateescape"))


def traceback(end: str, *frames: str, who: str = "") -> str:
    lines = ["Traceback (most recent call last):", *(f"  {frame}" for frame in frames), end]
    return "".join(f"{who}{line}\n" for line in lines)


LOADING = traceback("KeyError: 'words'", 'File "/toy/loader.py", line 3, in fetch', "return row[key]")
SAVING = traceback("KeyError: 'words'", 'File "/toy/saver.py", line 3, in save', "return row[key]")
FETCH = r"(?s)loader\.py.*\nKeyError: '(?P<key>\w+)'"


def test_the_same_exception_is_told_by_the_frames_above_it() -> None:
    (match,) = found(FETCH, "step 1\n" + SAVING + LOADING + "step 2\n")
    assert match.line == b"KeyError: 'words'"
    assert match.line_number == 8
    assert match.captures() == {"key": "words"}


def test_a_line_alone_is_no_block_and_a_block_no_line() -> None:
    assert found("KeyError", "KeyError: 'words'\n") == []
    rules = compile_rules([rule("KeyError"), Rule(name="l", pattern="KeyError")])
    assert [match.rule.name for match in rules.match_chunk(LOADING.encode())] == ["l"]
    assert [match.rule.name for match in rules.match_blocks(LOADING.encode())] == ["b"]


def test_each_speaker_has_a_block_of_its_own_without_its_prefix() -> None:
    one = traceback("KeyError: 'a'", "loader.py", who="[rank0]: ").splitlines()
    two = traceback("KeyError: 'b'", "loader.py", who="[rank1]: ").splitlines()
    text = "".join(f"{a}\n{b}\n" for a, b in zip(one, two, strict=True))
    matches = found(FETCH, text)
    assert [match.captures()["key"] for match in matches] == ["a", "b"]
    assert matches[0].text == b"Traceback (most recent call last):\n  loader.py\nKeyError: 'a'"


def test_what_others_say_in_between_is_not_in_the_block() -> None:
    text = "Traceback (most recent call last):\nstep 7 of 9\n  loader.py\nKeyError: 'a'\n"
    assert found(r"step 7", text) == []
    assert len(found(r"call last\):\n  loader", text)) == 1


def test_a_block_without_an_end_is_none() -> None:
    assert found("loader", "Traceback (most recent call last):\n  loader.py\n") == []
    endless = "Traceback (most recent call last):\n  loader.py\n" + "step 1 of 2\n" * 17 + "KeyError: 'a'\n"
    assert found("loader", endless) == []
    assert len(found("loader", endless.replace("step 1 of 2\n" * 17, "step 1 of 2\n" * 16))) == 1


def test_of_a_long_block_the_beginning_and_the_end_are_kept() -> None:
    frames = [f"frame {number}" for number in range(100)]
    (match,) = found("Traceback", traceback("KeyError: 1", *frames))
    lines = match.text.decode().splitlines()
    assert (lines[0], lines[1], lines[-2]) == (
        "Traceback (most recent call last):",
        "  frame 37",
        "  frame 99",
    )
    assert len(lines) == 65


def test_damaged_bytes_and_other_alphabets_are_no_obstacle() -> None:
    assert len(found("caf.*KeyError", traceback("KeyError: 'caf'", "caf\udcff"))) == 0
    assert len(found("(?s)caf.*KeyError", traceback("KeyError: 'caf'", "caf\udcff"))) == 1
    assert len(found("café", traceback("KeyError: 'café'"))) == 1


RULE = (
    "version: 1\nrules:\n  - {name: b, error_type: data, block: traceback, pattern: '(?s)loader.*KeyError'}\n"
)


def test_a_block_rule_is_read_as_it_was_written() -> None:
    (read,) = read_rules({"x.yaml": RULE.encode()})
    assert read.block is BlockKind.TRACEBACK
    (again,) = read_rules({"x.yaml": rules_text([read]).encode()})
    assert again.block is BlockKind.TRACEBACK


@pytest.mark.parametrize(
    ("change", "line", "what"),
    [
        (("block: traceback", "block: paragraph"), 3, "`block` is 'paragraph'"),
        (("name: b,", "name: b, at_start: true,"), 3, "for single lines"),
        (("name: b,", "name: b, role: progress,"), 3, "for single lines"),
        (("(?s)loader.*KeyError", "(?s)(?:loader)?"), 3, "matches an empty traceback"),
        (("name: b,", "name: b, match: ['KeyError: 1'],"), 3, "without a whole traceback"),
    ],
)
def test_mistakes_are_told_with_their_place(change: tuple[str, str], line: int, what: str) -> None:
    with pytest.raises(RuleErrors) as raised:
        read_rules({"x.yaml": RULE.replace(*change).encode()})
    assert [error.location.line for error in raised.value.errors] == [line]
    assert what in raised.value.errors[0].what


def test_an_example_is_a_whole_traceback() -> None:
    good = "".join(f"        {line}\n" for line in LOADING.splitlines())
    bad = good.replace("loader", "saver")
    text = (
        "version: 1\nrules:\n  - name: b\n    error_type: data\n    block: traceback\n"
        "    pattern: '(?s)loader.*KeyError'\n    match:\n      - |\n"
        + good
        + "    no_match:\n      - |\n"
        + bad
    )
    (read,) = read_rules({"x.yaml": text.encode()})
    assert (len(read.match), len(read.no_match)) == (1, 1)
    with pytest.raises(RuleErrors) as raised:
        read_rules({"x.yaml": text.replace("(?s)loader", "(?s)saver").encode()})
    assert len(raised.value.errors) == 2


def test_a_bench_counts_blocks_wherever_its_own_chunks_end() -> None:
    text = ("x" * 99 + "\n") * 655 + LOADING + LOADING
    speed = bench_text(compile_rules([rule(FETCH)]), text.encode(), lambda: 0.0)
    assert speed.hits == {"b": 2}
