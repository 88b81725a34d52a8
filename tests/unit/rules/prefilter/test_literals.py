"""Literals: what a line must contain for a pattern to match, and never more than that."""

from __future__ import annotations

import pytest

from midwatch.rules.prefilter.literals import (
    beginnings,
    lowered,
    required_by_way,
    required_literals,
    spellings,
)
from midwatch.rules.prefilter.syntax_tree import NotUnderstood, parse


def folded(text: str) -> str:
    """The letters of a text in either case, as a literal says it."""
    return "".join(chr(256 + ord(letter)) for letter in text)


@pytest.mark.parametrize(
    ("pattern", "demand"),
    [
        ("CUDA out of memory", {"CUDA out of memory"}),
        (r"rank \d+ died", {"rank "}),
        (r"\[rank\d\]: fail", {"]: fail"}),
        ("(?:timeout|timed out) after", {"timeout after", "timed out after"}),
        ("Err(?:or)?: x", {"Err: x", "Error: x"}),
        ("[Kk]illed", {"Killed", "killed"}),
        ("(?:ab){2}c", {"ababc"}),
        (r"\Qa.b\E!", {"a.b!"}),
        (r"a{,3}b", {"a{,3}b"}),
        (r"\x41\101\x{41}", {"AAA"}),
        ("(?i)nan", {folded("nan")}),
        ("((?i)na)x|yyy", {folded("na") + "x", "yyy"}),
        ("é is it", {"é is it".encode().decode("latin-1")}),
    ],
)
def test_what_must_be_there_is_found(pattern: str, demand: set[str]) -> None:
    assert frozenset(demand) in required_literals(pattern)


@pytest.mark.parametrize(
    "pattern",
    ["(?:error)?", "(?:error)*x", "error|", "[^e]{9}", r"\d+", r"\p{Greek}+", "a", r"(?:error){0}", "."],
)
def test_what_may_be_absent_is_not_demanded(pattern: str) -> None:
    assert required_literals(pattern) == ()


def test_each_alternative_of_a_whole_pattern_is_a_way_of_its_own() -> None:
    ways = required_by_way(r"(?:Watchdog|Timer) \w+ late|(out of memory|no space left)")
    assert [[sorted(demand) for demand in demands] for demands in ways] == [
        [["Timer ", "Watchdog "], [" late"]],
        [["out of memory"]],
        [["no space left"]],
    ]
    assert required_by_way(r"out of memory|\d+") == ()


def test_what_follows_a_part_that_may_be_empty_is_known_by_its_first_character() -> None:
    (demands,) = required_by_way(r"loss\s*[:=]")
    assert {f"loss{following}" for following in "\t\f\r :="} in demands
    (demands,) = required_by_way(r"loss\s*(?:x|yy)?z")
    assert demands == (frozenset({"loss"}),)


def test_what_follows_in_a_text_of_many_lines_may_be_a_line_feed() -> None:
    assert required_literals(r"loss\s*[:=]") == (frozenset({"loss"}),)


@pytest.mark.parametrize(
    ("pattern", "literals"),
    [
        (r"\bstep\s+\d", (b"step",)),
        (r"(?:caught )?Watchdog", (b"Watchdog", b"caught Watchdog")),
        (r"^(?:step|epoch) \d", (b"epoch ", b"step ")),
        (r"\s*step", ()),
        (r"(?i)step", ()),
        (r"\d+ steps|step", ()),
        (r"a\d", ()),
    ],
)
def test_with_what_a_match_begins(pattern: str, literals: tuple[bytes, ...]) -> None:
    assert beginnings(pattern) == literals


def test_letters_that_fold_beyond_ascii_are_not_demanded_in_utf8() -> None:
    assert required_literals("(?i)kkk") == (frozenset({folded("kkk")}),)
    assert required_literals("é?(?i)kkk") == ()


def test_a_literal_in_any_case_has_all_spellings_and_one_in_lower_case() -> None:
    assert spellings(folded("a") + "B") == [b"aB", b"AB"]
    assert lowered(folded("a") + "B") == "ab"


@pytest.mark.parametrize(("pattern", "bound"), [("^a$", True), (r"a\z", False), ("(?-m:^)a", False)])
def test_patterns_that_see_the_ends_of_the_text_are_known(pattern: str, bound: bool) -> None:
    assert parse(pattern).line_bound is bound


@pytest.mark.parametrize("pattern", [r"\_", "(?=a)", r"\Qa\E+", "(" * 200 + "a" + ")" * 200])
def test_what_is_not_surely_understood_is_refused(pattern: str) -> None:
    with pytest.raises(NotUnderstood):
        parse(pattern)
