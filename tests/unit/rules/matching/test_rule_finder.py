"""Which of many patterns a line holds, where some of them are not ASCII."""

from __future__ import annotations

import pytest

from midwatch.rules.expressions import Expression
from midwatch.rules.loader import load_bundle
from midwatch.rules.matching.rule_finder import ascii_twin, rule_finder

OURS = ("lost", "(?:é|e)nd$", "Ошибка|toy broke", "^x.?y$", "(?i)K elvin|z", r"\Qé.\E|q")


@pytest.mark.parametrize(
    "line",
    ["lost", "the end", "the énd", "toy broke", "Ошибка", "xy", "xéy", "k elvin", "é.", "", "lost énd"],
)
@pytest.mark.parametrize("count", range(len(OURS) + 1))
def test_the_patterns_found_in_a_line_are_those_that_each_finds_alone(line: str, count: int) -> None:
    patterns, text = OURS[:count], line.encode()
    alone = [index for index, pattern in enumerate(patterns) if Expression(pattern).search(text)]

    assert sorted(rule_finder(patterns)(text)) == alone


def test_a_character_that_may_be_missing_is_one_in_the_twin_too() -> None:
    twin = ascii_twin("caf日?e")

    assert twin is not None
    assert Expression(twin).search(b"cafe")


@pytest.mark.parametrize("pattern", ["(?i)\u212aelvin", "(?i)[é-я]oy", r"\Qé\E", "(?P<имя>x", r"é\x{2502}"])
def test_no_twin_is_known_where_a_byte_cannot_stand_for_the_character(pattern: str) -> None:
    assert ascii_twin(pattern) is None


def test_every_shipped_pattern_that_is_not_ascii_has_a_twin_so_that_ascii_lines_are_searched_once() -> None:
    others = [rule.pattern for rule in load_bundle("default").rules if not rule.pattern.isascii()]

    assert others
    assert [pattern for pattern in others if ascii_twin(pattern) is None] == []
