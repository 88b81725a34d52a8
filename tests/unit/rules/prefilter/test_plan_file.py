"""A plan that was written to a file is the plan that was made."""

from __future__ import annotations

import pytest

from midwatch.rules.matching.compiler import compile_rules
from midwatch.rules.model import Rule
from midwatch.rules.prefilter.plan import PrefilterPlan
from midwatch.rules.prefilter.plan_file import plan_of_text, text_of_plan

RULES = (
    Rule(name="belt", pattern="the belt of (?P<what>\\w+) tore", stop_pattern="the belt runs"),
    Rule(name="folded", pattern="(?i)valve is shut|pump pressure: none"),
    Rule(name="bare", pattern=r"^\d+$"),
    Rule(name="bytes", pattern="Überdruck|\xff\xfe"),
)


@pytest.mark.usefixtures("small_background")
@pytest.mark.parametrize("rules", [RULES, RULES[1:], ()], ids=["all", "without stops", "none"])
def test_it_is_read_as_it_was_made(rules: tuple[Rule, ...]) -> None:
    plan = compile_rules(rules).plan
    assert plan is not None
    assert plan_of_text(text_of_plan(plan)) == plan


@pytest.mark.parametrize("text", [b"", b"{}", b'{"rules": "a"}', b"[1]"])
def test_another_text_is_no_plan(text: bytes) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        plan_of_text(text)


@pytest.mark.usefixtures("small_background")
def test_each_literal_has_a_line_of_its_own_in_a_diff() -> None:
    plan: PrefilterPlan | None = compile_rules(RULES[1:]).plan
    assert plan is not None
    lines = {line.strip(" ,") for line in text_of_plan(plan).decode().splitlines()}
    assert {f'"{spelling.decode("latin-1")}"' for spelling in plan.triggers.lowered} <= lines
