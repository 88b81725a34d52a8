"""Lines of a form that came before have the rules that a search of each line finds."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midwatch.rules.loader import load_bundle
from midwatch.rules.matching.compiler import RuleSet, compile_rules
from midwatch.rules.matching.digits import MARK, digits_are_alike
from midwatch.rules.matching.known_forms import OFTEN, KnownForms, are_alike
from midwatch.rules.matching.matcher import lines_of
from midwatch.rules.matching.rule_finder import FindRules, rule_finder
from midwatch.rules.model import Rule
from midwatch.rules.prefilter.workloads import WORKLOADS
from midwatch.streams.lines.forms import LONGEST_FORM


@pytest.fixture(scope="module")
def shipped() -> RuleSet:
    return compile_rules(load_bundle("default").rules, scan=False)


def learning(rules: RuleSet) -> KnownForms:
    """Forms that are learnt as soon as they come often, however many rules there are."""
    return KnownForms(rules.compiled, rules.machinery.find_rules, rule_finder)


def searched(rules: RuleSet, lines: Sequence[bytes]) -> list[list[int]]:
    return [sorted(rules.machinery.find_rules(line)) for line in lines]


def often(*lines: bytes) -> list[bytes]:
    """The lines so often that their forms are learnt."""
    return [*lines] * OFTEN


def with_other_digits(line: bytes, chance: random.Random) -> bytes:
    return re.sub(rb"\d", lambda _: b"%d" % chance.randrange(10), line)


@pytest.mark.parametrize("name", WORKLOADS)
def test_each_line_of_a_workload_has_the_rules_of_a_search(shipped: RuleSet, name: str) -> None:
    chance = random.Random(name)
    lines = lines_of(WORKLOADS[name](60_000))
    lines += [with_other_digits(line, chance) for line in lines]
    assert list(learning(shipped).find_in(lines)) == searched(shipped, lines)


def test_each_example_has_the_rules_of_a_search_whichever_of_its_form_came_first(shipped: RuleSet) -> None:
    chance = random.Random(3)
    rules = [rule for rule in shipped.rules if not digits_are_alike(rule.pattern)]
    examples = [line.encode() for rule in rules for line in rule.match if "\n" not in line]
    lines = [each for line in examples[::3] for each in often(with_other_digits(line, chance), line)]
    assert list(learning(shipped).find_in(lines)) == searched(shipped, lines)


def test_a_rule_whose_digits_cannot_be_widened_is_asked_for_each_line() -> None:
    rules = compile_rules(
        [Rule(name="a", pattern=r"code \x31"), Rule(name="b", pattern=r"code \d")], scan=False
    )
    lines = often(b"code 2", b"code 1", b"code 1", b"code 3")
    assert list(rules.machinery.known_forms.find_in(lines)) == [[1], [0, 1], [0, 1], [1]] * OFTEN


def test_a_long_line_and_a_form_of_many_rules_are_searched() -> None:
    many = [Rule(name=f"r{n}", pattern=f"code {n}") for n in range(50)]
    rules = compile_rules(many, scan=False)
    lines = often(b"x" * LONGEST_FORM + b"code 7", b"code 7", b"code 8", b"code 41")
    assert list(rules.machinery.known_forms.find_in(lines)) == searched(rules, lines)


PIECES = st.sampled_from(["code ", "0", "7", "42", "x", "[rank3]: ", " -> "])
PATTERNS = ("code [1-6]", r"code \d+", "7", r"^\[rank\d\]: x", r"-> [^0-4]x?", "(?i)CODE 4|x0", r"\b42\b")


@given(st.lists(st.lists(PIECES, max_size=6).map("".join), max_size=12))
def test_any_lines_have_the_rules_of_a_search(texts: list[str]) -> None:
    lines = often(*(text.encode() for text in texts))
    assert list(TOYS.machinery.known_forms.find_in(lines)) == searched(TOYS, lines)


@given(st.lists(st.lists(PIECES, max_size=6).map("".join), max_size=6), st.randoms(use_true_random=False))
def test_lines_with_other_digits_have_the_rules_of_a_search(texts: list[str], chance: random.Random) -> None:
    lines = often(*(text.encode() for text in texts))
    lines = [with_other_digits(line, chance) for line in lines + lines]
    assert list(TOYS.machinery.known_forms.find_in(lines)) == searched(TOYS, lines)


def test_a_line_is_searched_once_for_each_value_of_the_digits_that_decide() -> None:
    rules = [Rule(name="a", pattern=r"step \d+ lost [1-9]"), Rule(name="b", pattern=r"step \d+")]
    compiled = compile_rules(rules, scan=False).machinery
    asked: list[bytes] = []

    def finder_of(patterns: Sequence[str]) -> FindRules:
        find = rule_finder(patterns)

        def counted(line: bytes) -> list[int]:
            if MARK not in line:
                asked.append(line)
            return find(line)

        return counted

    forms = KnownForms(compiled.compiled, rule_finder([rule.pattern for rule in rules]), finder_of)
    list(forms.find_in([b"step 100 lost 0"] * OFTEN))
    asked.clear()
    lines = [b"step %d lost %d" % (step, step % 3) for step in range(100, 400)]
    assert list(forms.find_in(lines)) == [[0, 1] if step % 3 else [1] for step in range(100, 400)]
    assert asked == [b"step 100 lost 1", b"step 101 lost 2"]


def test_a_short_log_ends_before_many_rules_learn_its_forms() -> None:
    learnt: list[int] = []

    def finder_of(patterns: Sequence[str]) -> FindRules:
        learnt.append(len(patterns))
        return rule_finder(patterns)

    find, compiled = TOYS.machinery.find_rules, TOYS.compiled
    forms = KnownForms(compiled, find, finder_of, patience=100)
    lines = [b"code %d" % (number % 10) for number in range(2 * OFTEN + 100)]
    short = lines[: OFTEN + 99]
    assert list(forms.find_in(short)) == searched(TOYS, short)
    assert learnt == []
    assert list(forms.find_in(lines)) == searched(TOYS, lines)
    assert learnt != []


def test_rules_with_a_scan_learn_forms_at_once_however_many_they_are() -> None:
    rules = [Rule(name=f"r{number}", pattern=f"code {number} of toys") for number in range(1, 70)]
    unscanned = compile_rules(rules, scan=False)
    lines = [b"code 7 of toys"] * (OFTEN + 1)
    list(unscanned.machinery.known_forms.find_in(lines))
    assert known(unscanned) == set()
    scanned = unscanned.with_plan(unscanned.make_plan())
    list(scanned.machinery.known_forms.find_in(lines))
    assert known(scanned) == {b"code 0 of toys"}


def known(rules: RuleSet) -> set[bytes]:
    return set(rules.machinery.known_forms._known)


def test_many_digits_that_decide_are_not_remembered() -> None:
    rules = compile_rules([Rule(name="a", pattern=f"{'[1-9]' * 20}")], scan=False)
    lines = often(b"1" * 20, b"1" * 19 + b"0", b"1" * 21)
    assert list(rules.machinery.known_forms.find_in(lines)) == [[0], [], [0]] * OFTEN


def test_many_values_of_the_digits_that_decide_are_not_remembered() -> None:
    rules = compile_rules([Rule(name="a", pattern="code [1-9]{3}")], scan=False)
    lines = often(b"code 123") + [b"code %03d" % number for number in range(1000)]
    assert list(rules.machinery.known_forms.find_in(lines)) == searched(rules, lines)


def test_a_line_that_holds_the_mark_is_searched() -> None:
    rules = compile_rules([Rule(name="a", pattern=".code [1-9]")], scan=False)
    lines = often(b"code 1", b"\0code 0", b"\0code 1")
    assert list(rules.machinery.known_forms.find_in(lines)) == [[], [], [0]] * OFTEN


TOYS = compile_rules([Rule(name=f"r{n}", pattern=each) for n, each in enumerate(PATTERNS)], scan=False)


def test_lines_are_alike_by_their_first_ones() -> None:
    assert are_alike([b"step %d" % n for n in range(10, 99)])
    assert not are_alike([b"step %d" % n * (n + 1) for n in range(10)])
    assert not are_alike([b"one line"])
    assert are_alike([])
