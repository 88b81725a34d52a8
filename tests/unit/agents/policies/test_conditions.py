"""Conditions answer yes, no, or that nobody asked; the first two only where that cannot change it."""

from __future__ import annotations

import pytest

from midwatch.agents.policies.condition_reader import plain_condition, read_condition
from midwatch.agents.policies.conditions import (
    AllOf,
    Always,
    AnyOf,
    AttemptsBelow,
    Condition,
    ConditionFacts,
    Cooldown,
    FactIs,
    Not,
    NotAsked,
    Past,
    ask,
)
from midwatch.rules.errors import LocatedError
from midwatch.rules.files.writer import yaml_text
from midwatch.streams.strict_yaml import read_yaml

YES, NO, UNASKED = Always(), Not(Always()), NotAsked("FileExistsCondition")


def held(condition: Condition, **known: str) -> bool | None:
    return ask(condition, ConditionFacts(known)).held


@pytest.mark.parametrize(
    ("condition", "answer"),
    [
        (AllOf((YES, UNASKED)), None),
        (AllOf((UNASKED, NO)), False),
        (AllOf(()), True),
        (AnyOf((NO, UNASKED)), None),
        (AnyOf((UNASKED, YES)), True),
        (AnyOf((NO, NO)), False),
        (Not(UNASKED), None),
        (Not(NO), True),
    ],
)
def test_what_nobody_asked_counts_only_where_the_rest_leaves_it_open(
    condition: Condition, answer: bool | None
) -> None:
    assert held(condition) is answer


@pytest.mark.parametrize(("restarts", "answer"), [(0, True), (1, True), (2, False), (3, False)])
@pytest.mark.capability("S001-75")
def test_the_first_start_is_an_attempt_too(restarts: int, answer: bool) -> None:
    assert ask(AttemptsBelow(3), ConditionFacts(past=Past(restarts))).held is answer


def test_a_cooldown_lets_an_act_wait_and_its_opposite_does_not_hold_meanwhile() -> None:
    early = ConditionFacts(past=Past(1, last_restart_ms=1_000_000, now_ms=1_030_000))
    late = ConditionFacts(past=Past(1, last_restart_ms=1_000_000, now_ms=1_070_000))
    assert (ask(Cooldown(60), early).held, ask(Cooldown(60), early).not_before_ms) == (True, 1_060_000)
    assert (ask(Cooldown(60), late).held, ask(Cooldown(60), late).not_before_ms) == (True, 0)
    assert (ask(Not(Cooldown(60)), early).held, ask(Not(Cooldown(60)), late).held) == (True, False)
    assert ask(AllOf((Cooldown(60), Cooldown(90))), early).not_before_ms == 1_090_000
    assert ask(AnyOf((Cooldown(60), Cooldown(90))), early).not_before_ms == 1_060_000
    assert ask(Cooldown(60), ConditionFacts()).not_before_ms == 0


def test_a_coarse_type_covers_its_finer_ones() -> None:
    assert held(FactIs("error_type", ("oom",)), error_type="host_oom") is True
    assert held(FactIs("error_type", ("host_oom",)), error_type="oom") is False
    assert held(FactIs("subsystem", ("oom",)), subsystem="host_oom") is False
    assert (held(FactIs("rank"), rank="3"), held(FactIs("rank"))) == (True, False)


@pytest.mark.parametrize(
    "condition",
    [
        YES,
        NO,
        UNASKED,
        AttemptsBelow(4),
        Cooldown(0.5),
        Cooldown(86400),
        FactIs("rule"),
        FactIs("error_type", ("on", "1e3", "a b")),
        AllOf((YES, AnyOf((UNASKED, Not(Cooldown(90)))))),
        AllOf(()),
    ],
)
def test_a_condition_is_read_as_it_was_written(condition: Condition) -> None:
    errors: list[LocatedError] = []
    tree = read_yaml("x", yaml_text(plain_condition(condition)).encode(), errors)
    assert tree is not None
    assert (read_condition(tree, errors), errors) == (condition, [])


def test_mistakes_in_a_condition_are_told() -> None:
    errors: list[LocatedError] = []
    tree = read_yaml(
        "x", b"any: [{cooldown: 60}, {always: true, not_asked: x}, {sometimes: true}, 3]", errors
    )
    assert tree is not None
    read_condition(tree, errors)
    said = [error.what for error in errors]
    assert any("`cooldown` is not a duration" in what for what in said)
    assert any("a condition has one key" in what for what in said)
    assert any("unknown key `sometimes`" in what for what in said)
