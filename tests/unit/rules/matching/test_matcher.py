"""Matching: exactly what RE2 says of each line and each rule, wherever the chunk was cut."""

from __future__ import annotations

import pytest

from midwatch.rules.errors import RuleErrors
from midwatch.rules.matching import matcher
from midwatch.rules.matching.compiler import RuleSet, compile_rules
from midwatch.rules.model import Rule


def rules(*patterns: str) -> RuleSet:
    return compile_rules(Rule(name=f"r{i}", pattern=pattern) for i, pattern in enumerate(patterns))


def hits(rule_set: RuleSet, text: bytes) -> list[tuple[int, str, bytes]]:
    return [(match.line_number, match.rule.name, match.line) for match in rule_set.match_chunk(text)]


def test_hits_come_by_line_and_then_by_rule() -> None:
    found = hits(rules("b", "a"), b"ab\nxx\nb")
    assert found == [(0, "r0", b"ab"), (0, "r1", b"ab"), (2, "r0", b"b")]


def test_offsets_are_those_of_the_line_in_the_chunk() -> None:
    (match,) = rules("err").match_chunk(b"one\n an err \nthree\n")
    assert (match.start, match.end, match.line) == (4, 12, b" an err ")


def test_hits_are_counted_taken_by_place_and_compared() -> None:
    rule_set = rules("err")
    found = rule_set.match_chunk(b"err 1\nwell\nerr 2\nerr 3\n")
    assert len(found) == 3
    assert [match.line for match in found] == [b"err 1", b"err 2", b"err 3"]
    assert found[1].line == b"err 2"
    assert found[1:] == rule_set.match_chunk(b"err 1\nwell\nerr 2\nerr 3\n")[1:]
    assert found != rule_set.match_chunk(b"err 1\n")


def test_a_line_feed_at_the_end_begins_no_line() -> None:
    anything = rules("^")
    assert [len(hits(anything, text)) for text in (b"", b"\n", b"a", b"a\n", b"a\n\n", b"\n\na")] == [
        0,
        1,
        1,
        1,
        2,
        3,
    ]


@pytest.mark.parametrize(
    ("pattern", "text", "lines"),
    [
        (r"^b", b"ab\nb", [1]),
        (r"a$", b"ab\na\na b", [1]),
        (r"a\s+b", b"a\nb\na  b", [2]),
        (r"[^x]b", b"a\nb\nab", [2]),
        (r"\Ab\z", b"a\nb\nc", [1]),
        (r"(?s)a.b", b"a\nb\na-b", [2]),
        (r"a\n", b"a\nb", []),
    ],
)
def test_no_match_crosses_a_line(pattern: str, text: bytes, lines: list[int]) -> None:
    assert [line for line, _, _ in hits(rules(pattern), text)] == lines


def test_an_ascii_pattern_matches_through_bytes_that_are_no_utf8() -> None:
    (match,) = rules(r"memory (?P<what>.*) Tried").match_chunk(b"memory \xff\xfe. Tried")
    assert match.captures() == {"what": "\ufffd\ufffd."}


def test_a_pattern_with_other_characters_is_utf8() -> None:
    assert hits(rules("é", "e"), "é\ne".encode()) == [(0, "r0", "é".encode()), (1, "r1", b"e")]


def test_captures_go_by_meaning_and_leave_out_what_took_no_part() -> None:
    rule = Rule(
        name="size",
        pattern=r"(?P<old>\d+) total|total of (?P<new>\d+)(?: on (?P<rank>\d+))?",
        captures={"old": "total", "new": "total"},
    )
    found = compile_rules([rule]).match_chunk(b"12 total\ntotal of 7 on 3\ntotal of 9")
    assert [match.captures() for match in found] == [
        {"total": "12"},
        {"total": "7", "rank": "3"},
        {"total": "9"},
    ]


def test_captures_are_those_of_the_leftmost_match_wherever_its_literals_stand() -> None:
    (match,) = rules(r"(?:loss|norm) (?P<value>\d+)").match_chunk(b"loss of norm 3, loss 4")
    assert match.captures() == {"value": "3"}
    assert match.spans() == [(8, 14), (13, 14)]


def test_a_crowd_of_hits_at_its_beginning_does_not_have_all_lines_of_a_chunk_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crowd, quiet = b"err\n" * 600, b"all is well\n" * 4000
    asked: list[bytes] = []
    monkeypatch.setattr(matcher, "match_lines", lambda _, text: asked.append(text))
    rule_set = rules("err")
    assert len(rule_set.match_chunk(crowd + quiet)) == 600
    rule_set.match_chunk(crowd)
    assert asked == [crowd]


def test_a_rule_set_of_no_rules_finds_nothing() -> None:
    assert not compile_rules([]).match_chunk(b"anything\n")


def test_a_bad_pattern_is_an_error_and_never_a_crash_or_a_silent_none() -> None:
    with pytest.raises(RuleErrors, match="RE2 does not accept the pattern of rule 'r1'"):
        rules("good", "(bad")


def test_the_hash_depends_on_what_the_rules_say_only() -> None:
    assert rules("a", "b").content_hash == rules("a", "b").content_hash
    assert rules("a", "b").content_hash != rules("a", "c").content_hash


def test_rules_beyond_ascii_in_any_case_are_compiled_at_once_and_found() -> None:
    found = hits(
        rules("(?i)é the quick brown fox jumps over a lazy dog", "plain"),
        "É THE quick BROWN fox jumps over a lazy DOG\nplain\n".encode(),
    )
    assert [(number, name) for number, name, _ in found] == [(0, "r0"), (1, "r1")]
