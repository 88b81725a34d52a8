"""Patterns that cannot tell one digit from another: lines of one form share the places of their captures."""

from __future__ import annotations

import random
import re
from collections import Counter

import pytest
import re2

from midwatch.rules.loader import load_bundle
from midwatch.rules.matching.compiler import compile_rules
from midwatch.rules.matching.digits import MARK, digits_are_alike, with_a_mark, with_any_digit
from midwatch.rules.model import Rule
from midwatch.rules.prefilter.workloads import WORKLOADS


@pytest.mark.parametrize(
    "pattern",
    [
        r"step (?P<step>\d+)/\s*(?P<total>[0-9]{1,9})",
        r"loss[=:] (?P<loss2>[-+.\w]+)(?:x|y){2}",
        r"a{3}[^a-z]\d\.[[:digit:]_]",
        r"\[rank\d+\]",
        r"named [`\x27\x{22}](?P<name>\w+)\x{0027}",
        r"[\x20-\x2f\x3a-\x7e]|[\x{20}-z]",
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
        r"\x{39}",
        r"\x{0030}",
        r"[\x20-\x35]",
        r"\xe9",
        r"\x{2039}",
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


@pytest.mark.parametrize(
    ("pattern", "wider"),
    [
        ("exit code 1", r"exit code \d"),
        (r"[1-9]\d*", r"[0-9]\d*"),
        (r"[^0]x", ".x"),
        (r"[^03-5a]x", "[^a]x"),
        (r"\x31", None),
        (r"\x27lost\x27 7", r"\x27lost\x27 \d"),
        (r"[\x{22}\x27]7", r"[\x{22}\x27]\d"),
        (r"[\x275]", r"[\x270-9]"),
        (r"[\x21-5]", None),
        (r"\101", None),
        (r"a[\101b]", None),
        (r"\Q7", None),
        (r"[a-f2-4,]{2}7", r"[a-f,0-9]{2}\d"),
        (r"(?P<step1>[\d,5])", r"(?P<step1>[\d,0-9])"),
        (r"[!-5]", None),
        (r"[]5]", "[]0-9]"),
        (r"[[:alpha:]4]", "[[:alpha:]0-9]"),
    ],
)
def test_a_pattern_with_any_digit_in_the_place_of_some(pattern: str, wider: str | None) -> None:
    assert with_any_digit(pattern) == wider


def test_what_a_rule_finds_is_found_with_any_digit_too() -> None:
    chance = random.Random(5)
    rules = [rule for rule in load_bundle("default").rules if not rule.block]
    telling = 0
    for rule in rules:
        wider = with_any_digit(rule.pattern)
        assert wider is not None, rule.name
        assert digits_are_alike(rule.pattern) == (wider == rule.pattern)
        telling += wider != rule.pattern
        for line in rule.match:
            other = re.sub(r"\d", lambda _: str(chance.randrange(10)), line)
            assert re2.search(wider, other) is not None, (rule.name, other)
    assert telling > 100


@pytest.mark.parametrize(
    ("pattern", "line", "deciding"),
    [
        ("exit code 1", b"at 77 exit code 0", {16}),
        (r"[1-9]\d* lost", b"step 00 lost 0", {5, 6}),
        (r"step \d+.*[1-9] lost", b"step 00 0 of 0 lost", {13}),
        (r"\b0[2-9]\b", b"x00 00", {1, 2, 4, 5}),  # it knows no boundaries
        (r"code (?:4|\D)", b"code 0", {5}),
        (r"\S5", b"00 0", {1}),
        (r"\W5|\D\D7", b"a0 0 x0", {3, 6}),
        (r"[^0]x", b"0x0", {0}),
        (r"[^x]+[^0]x", b"00x 0x0", {1, 4}),
        (r"[]-]5", b"]0 -0 0", {1, 4}),
        (r"[^]-]5", b"]0 a0 -0 00", {4, 9, 10}),
        (r"[^-]5", b"-0 a0", {4}),
        (r"[a]5", b"a0 b0", {1}),
        ("(?i)CODE 4|x0", b"code 0 x0", {5, 8}),
        (r"code \d", b"code 0", set[int]()),
        (r"\x27node7\x27|[\x22\x{27}]5", b"00 'node0' '0", {8, 12}),
    ],
)
def test_a_mark_shows_which_digits_decide(pattern: str, line: bytes, deciding: set[int]) -> None:
    marked = with_a_mark(pattern)
    assert marked is not None
    places = [at for at in range(len(line)) if line[at : at + 1].isdigit()]
    found = {at for at in places if re2.search(marked.encode(), line[:at] + MARK + line[at + 1 :])}
    assert found == deciding


@pytest.mark.parametrize("pattern", [r"\x31", r"[\x30-\x35]", "é 5", r"\pN5"])
def test_no_mark_is_known_for_some_patterns(pattern: str) -> None:
    assert with_a_mark(pattern) is None


@pytest.mark.parametrize("workload", ["progress", "noise"])
def test_rules_that_tell_digits_apart_are_asked_in_few_of_the_usual_lines(workload: str) -> None:
    known = {
        "megatron_nan_iterations",
        "loss_out_of_all_bounds",
    }  # they read each Megatron iteration's numbers
    lines = WORKLOADS[workload](100_000).split(b"\n")
    asked = Counter[str]()
    for rule in load_bundle("default").rules:
        wider = None if digits_are_alike(rule.pattern) else with_any_digit(rule.pattern)
        if wider is not None:
            asked[rule.name] += sum(map(bool, map(re2.compile(wider).search, lines)))
    often = {name for name, times in asked.items() if 100 * times > len(lines)}
    assert often <= known, "write a number that may be another one as digits of any value"
