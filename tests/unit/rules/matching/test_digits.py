"""Patterns that cannot tell one digit from another: lines of one form share the places of their captures."""

from __future__ import annotations

import random

import pytest

from midwatch.rules.matching.compiler import compile_rules
from midwatch.rules.matching.digits import digits_are_alike
from midwatch.rules.model import Rule


@pytest.mark.parametrize(
    "pattern",
    [
        r"step (?P<step>\d+)/\s*(?P<total>[0-9]{1,9})",
        r"loss[=:] (?P<loss2>[-+.\w]+)(?:x|y){2}",
        r"a{3}[^a-z]\d\.[[:digit:]_]",
        r"\[rank\d+\]",
    ],
)
def test_such_patterns_are_known(pattern: str) -> None:
    assert digits_are_alike(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "exit code 1",
        r"[1-9]\d*",
        r"[^0]x",
        r"\x31",
        r"a{,3}",
        r"[{2}]",
        r"\pN",
        r"[!-0-9]",
        r"\Q[\d\E",
        r"x[0-4]",
    ],
)
def test_it_says_no_where_a_digit_counts(pattern: str) -> None:
    assert not digits_are_alike(pattern)


def test_the_places_are_those_of_a_search_in_each_line() -> None:
    pattern = r"it (?P<step>\d+)/(?P<total>\d+)(?: \| loss: (?P<loss>[-+.\dE]+))?(?:.*?ms: (?P<ms>[\d.]+))?"
    rules = compile_rules([Rule(name="r", pattern=pattern)], scan=False)
    alone = rules.compiled[0].expression
    chance = random.Random(3)
    for _ in range(2000):
        line = f"it {chance.randrange(120)}/{chance.randrange(99)}"
        line += chance.choice(["", f" | loss: {chance.random():.3E}", f" x ms: {chance.random():.2f}"])
        (match,) = rules.match_line(line.encode())
        assert match.spans() == alone.search(line.encode())
