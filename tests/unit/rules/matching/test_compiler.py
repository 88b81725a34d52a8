"""A rule set that is ready at once finds what the fast one finds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from house.cases import cases
from midwatch.rules.errors import RuleErrors
from midwatch.rules.expressions import Expression, PatternError
from midwatch.rules.loader import PLANNED, load_bundle, shipped_plan
from midwatch.rules.matching import compiler
from midwatch.rules.matching.compiler import RuleSet, compile_rules
from midwatch.rules.matching.hits import MatcherDisagreement
from midwatch.rules.model import BlockKind, Rule
from midwatch.rules.prefilter.triggers import Triggers, choose_triggers
from midwatch.rules.prefilter.workloads import noise, storm

RULES = (
    Rule(name="mesh", pattern="the mesh of (?P<what>\\w+) was lost", stop_pattern="the mesh is back"),
    Rule(name="nan", pattern="(?i)loss is nan|gradient norm: inf"),
    Rule(name="number", pattern=r"^\d+$"),
    Rule(name="umlaut", pattern="Gerät verloren|\xff\xfe"),
    Rule(name="frames", pattern="Traceback", block=BlockKind.TRACEBACK),
)


@pytest.fixture(scope="module")
def shipped() -> RuleSet:
    every = load_bundle("default").rules
    return compile_rules(every[: cases(len(every))], known=shipped_plan())


def test_without_the_scan_the_same_is_found(shipped: RuleSet) -> None:
    text = storm(cases(200_000))

    def found(rule_set: RuleSet) -> list[tuple[str, int]]:
        return [(hit.rule.name, hit.line_number) for hit in rule_set.match_chunk(text)]

    with_scan = found(shipped)
    assert with_scan
    assert found(compile_rules(shipped.rules, scan=False)) == with_scan


def test_few_lines_of_noise_hold_a_trigger_of_a_shipped_rule_and_no_hit(shipped: RuleSet) -> None:
    """A rule whose only literal is frequent makes every other rule slower: `) ` stood in one line of 20."""
    lines = noise(500_000).splitlines()
    triggers = shipped.triggers
    held = [
        line for line in lines
        if any(trigger in line for trigger in triggers.spellings)
        or any(trigger in line.lower() for trigger in triggers.lowered)
    ]  # fmt: skip

    for_nothing = [line for line in held if not shipped.match_line(line)]
    assert triggers.unguarded == ()
    assert len(for_nothing) * 200 <= len(lines)


def found_in(rule_set: RuleSet) -> list[list[tuple[str, int]]]:
    """The hits of lines, stop patterns and blocks in a text that holds some of each."""
    text = (
        storm(20_000)
        + b'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\nValueError: x\n'
        + b"the mesh of racks was lost\nLoss IS NaN\n12\nthe mesh is back\nGer\xc3\xa4t verloren\nall over"
    )
    ways = (rule_set.match_chunk, rule_set.match_stops, rule_set.match_blocks)
    return [[(hit.rule.name, hit.start) for hit in way(text)] for way in ways]


def test_a_scan_by_the_plan_of_another_compilation_finds_the_same() -> None:
    plan, unscanned = compile_rules(RULES).plan, compile_rules(RULES, scan=False)
    assert plan is not None
    scanned = unscanned.with_plan(plan)
    assert scanned.content_hash == unscanned.content_hash
    assert all(found_in(scanned))
    assert found_in(scanned) == found_in(unscanned)


OVER = Rule(name="over", pattern="the mesh is (?P<what>\\w+)", stop_pattern="all over")
WITH_TRIGGERS = tuple(rule for rule in RULES if rule.name != "number")
"""A rule without a trigger makes the matcher search every line, with no scan."""


@pytest.mark.parametrize("rules", [(*RULES, OVER), (*WITH_TRIGGERS, OVER)], ids=["with gates", "scan alone"])
@pytest.mark.parametrize("count", [0, 1, 2, 4])
def test_rules_that_come_behind_others_are_found_beside_them(rules: tuple[Rule, ...], count: int) -> None:
    at_once, joined = compile_rules(rules), compile_rules(rules[:count]).with_rules(rules[count:])
    assert joined.plan is not None
    assert joined.content_hash == at_once.content_hash
    assert all(found_in(joined))
    assert found_in(joined) == found_in(at_once)
    assert found_in(joined.with_rules([Rule(name="last", pattern="racks")])) != found_in(at_once)


def test_a_plan_for_other_rules_is_refused() -> None:
    plan = compile_rules(RULES).plan
    assert plan is not None
    with pytest.raises(ValueError, match="prefilter plan"):
        compile_rules(RULES[1:], scan=False).with_plan(plan)


@pytest.fixture
def plans_made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many patterns each plan is made for that a test makes."""
    made: list[int] = []

    def choose(patterns: tuple[str, ...], text: bytes) -> Triggers:
        made.append(len(patterns))
        return choose_triggers(patterns, text)

    monkeypatch.setattr(compiler, "choose_triggers", choose)
    compiler._chosen.cache_clear()
    return made


@pytest.mark.usefixtures("small_background")
def test_a_known_plan_is_used_for_its_own_rules_and_for_no_others(plans_made: list[int]) -> None:
    plan = compile_rules(RULES).plan
    plans_made.clear()
    assert compile_rules(RULES, known=plan).plan == plan
    assert plans_made == []
    assert found_in(compile_rules(RULES[:3], known=plan)) == found_in(compile_rules(RULES[:3], scan=False))
    assert plans_made != []


def test_the_shipped_plan_is_that_of_the_default_rules_and_passes_over_no_example(
    plans_made: list[int],
) -> None:
    assert compile_rules(load_bundle(PLANNED).rules, known=shipped_plan()).plan == shipped_plan()
    assert plans_made == []


WITH_EXAMPLES = (
    Rule(name="mast", pattern="the mast broke at (?P<height>\\d+) m", match=("the mast broke at 9 m",)),
    Rule(name="sail", pattern="(?i)sail (?:torn|lost)", match=("Sail torn", "SAIL LOST")),
)


@pytest.mark.usefixtures("small_background")
@pytest.mark.parametrize("rule", WITH_EXAMPLES, ids=["as it is", "folded"])
@pytest.mark.parametrize("where", ["triggers", "automata"])
def test_a_scan_that_passes_over_an_example_is_refused_with_its_rule(rule: Rule, where: str) -> None:
    plan, other = compile_rules([rule]).plan, ((b"nothing of it",),)
    assert plan is not None
    if where == "triggers":
        wrong = replace(plan, triggers=replace(plan.triggers, of_pattern=other))
    else:
        wrong = replace(plan, packed=other, packed_lowered=())
    with pytest.raises(MatcherDisagreement, match=rule.name):
        compile_rules([rule], known=wrong)


def test_an_expression_is_made_when_its_rule_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def make(pattern: str) -> Expression:
        made.append(pattern)
        return Expression(pattern)

    monkeypatch.setattr("midwatch.rules.matching.hits.Expression", make)
    rules = compile_rules(
        [Rule(name="a", pattern=r"toy (?P<n>\d+)"), Rule(name="b", pattern="doll")], scan=False
    )
    (hit,) = rules.match_line(b"toy 12")
    assert made == []
    assert hit.captures() == {"n": "12"}
    assert made == [r"toy (?P<n>\d+)"]


def test_a_rule_that_needs_more_memory_alone_than_re2_gives_it_is_read_all_the_same() -> None:
    large = r"(?P<a>toy)|" + r"\pL{999}" * 60
    with pytest.raises(PatternError, match="too large"):
        Expression(large)
    (hit,) = compile_rules([Rule(name="large", pattern=large)], scan=False).match_line(b"a toy")
    assert hit.captures() == {"a": "toy"}


def test_every_pattern_that_re2_refuses_is_told_with_its_reason() -> None:
    rules = [
        Rule(name="good", pattern="toy"),
        Rule(name="open", pattern="(toy"),
        Rule(name="back", pattern=r"\1"),
    ]
    with pytest.raises(RuleErrors) as refused:
        compile_rules(rules, scan=False)
    assert [error.what.partition(": ")[0].split("'")[1] for error in refused.value.errors] == ["back", "open"]
    assert "missing ): (toy" in str(refused.value)
