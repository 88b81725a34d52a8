"""The policy `expected_cost`: chance and costs decide, and its reason shows them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType

from house.cases import cases
from midwatch.agents.decide.state import DecideState, learned
from midwatch.agents.policies import choose
from midwatch.agents.policies.base import Policy, PolicyChoice
from midwatch.agents.policies.conditions import Past
from midwatch.agents.policies.loader import load_policy
from midwatch.agents.policies.reader import read_policy
from midwatch.agents.policies.restarts import attempts_in_vain, has_passed
from midwatch.agents.policies.writer import policy_text
from midwatch.rules.errors import RuleErrors
from midwatch.streams.records import Chance, Incident, Mode, SchedulerFact
from unit.agents.detect.incident.scene import Scene
from unit.agents.policies.incidents import incident

SHIPPED = load_policy("expected_cost")


def end(
    share: float, *, transient: bool | None = None, error_type: str = "nccl", mode: Mode = "crash"
) -> Incident:
    seen = incident(error_type=error_type, mode=mode)
    chance = Chance(share, 12, 17, "nccl, transient, after a step")
    return replace(seen, verdict=replace(seen.verdict, transient=transient, chance=chance))


def judged(seen: Incident, past: Past | None = None, policy: Policy = SHIPPED) -> PolicyChoice:
    return choose(policy, seen, past)[1]


@pytest.mark.parametrize(
    ("share", "transient", "action"),
    [
        (0.9, True, "restart"),
        (0.26, True, "restart"),
        (0.24, True, "hold"),
        (0.26, None, "restart"),
        (0.24, None, "hold"),
        (0.26, False, "stop"),
        (0.49, False, "stop"),
        (0.51, False, "restart"),
        (0.0, None, "hold"),
        (1.0, False, "restart"),
    ],
)
def test_six_hours_of_waiting_against_two_of_a_start_need_a_quarter_and_a_permanent_failure_a_half(
    share: float, transient: bool | None, action: str
) -> None:
    assert judged(end(share, transient=transient)).action == action


def test_the_reason_shows_both_sides_and_the_counts() -> None:
    assert judged(end(0.7, transient=True)).reason == (
        "0.70 x 6.00 h of waiting = 4.20 h, against 0.30 x 2.00 h of a wasted start = 0.60 h; chance 70%: "
        "12 of 17 labelled ends like this (nccl, transient, after a step) were judged worth a restart"
    )
    permanent = judged(end(0.1, transient=False)).reason
    assert "against 0.90 x 2.00 h of a wasted start x 3 for a permanent failure = 5.40 h" in permanent
    assert judged(end(0.1, transient=True)).near_misses == ("nccl is transient, but a start costs more",)


def test_a_start_that_takes_long_counts_for_as_long_as_it_takes() -> None:
    slow = judged(end(0.4), Past(first_step_s=5 * 3600.0))
    assert (slow.action, judged(end(0.4)).action) == ("hold", "restart")
    assert "0.60 x 5.00 h of a wasted start, as long as its last start took = 3.00 h" in slow.reason
    assert judged(end(0.4), Past(first_step_s=60.0)).action == "restart", "and never for less than was said"


def test_the_last_start_that_made_a_step_is_the_one_that_tells_how_long_a_start_takes() -> None:
    state = learned(DecideState(), replace(incident(), first_step_s=9000.0))
    assert learned(state, incident()).first_step_s == 9000.0, "this one made none"
    assert learned(state, replace(incident(), first_step_s=60.0)).first_step_s == 60.0


def test_each_restart_in_vain_halves_the_chance() -> None:
    actions = [judged(end(0.9), Past(in_vain=number)).action for number in range(4)]
    assert actions == ["restart", "restart", "hold", "hold"]
    assert "chance 22%, halved for each of 2 restarts in vain" in judged(end(0.9), Past(in_vain=2)).reason


def test_what_has_no_chance_and_what_a_person_or_a_time_limit_ended_is_judged_as_by_verdict() -> None:
    plain, verdict = incident(error_type="nccl"), load_policy("verdict")
    for seen in (
        plain,
        end(0.9, error_type="user_interrupt"),
        end(0.9, mode="timeout", error_type="timeout"),
    ):
        assert judged(seen) == judged(seen, policy=verdict)
        assert judged(seen).action == "hold"


@pytest.mark.parametrize(
    ("transient", "grounds", "action"),
    [
        (None, 0, "hold"),
        (None, 4, "hold"),
        (None, 5, "restart"),
        (None, UNSET, "restart"),
        (True, 0, "restart"),
        (False, 0, "restart"),
    ],
)
def test_a_chance_without_grounds_restarts_nothing_whose_claim_is_unknown(
    transient: bool | None, grounds: int | UnsetType, action: str
) -> None:
    seen = end(0.9, transient=transient, error_type="unknown")
    assert seen.verdict.chance
    chance = replace(seen.verdict.chance, grounds=grounds)
    assert judged(replace(seen, verdict=replace(seen.verdict, chance=chance))).action == action


def test_the_hold_says_that_the_chance_has_no_grounds() -> None:
    seen = end(0.32, error_type="unknown")
    assert seen.verdict.chance
    held = judged(
        replace(seen, verdict=replace(seen.verdict, chance=replace(seen.verdict.chance, grounds=0)))
    )
    assert held.reason == (
        "unknown: it is not known whether a restart can help; "
        "its chance of 32% rests on 0 ends of its kind, and a restart needs 5"
    )
    assert held.near_misses == ("waiting costs more, but the chance has no grounds",)


def test_a_person_s_cancel_and_a_success_are_left_alone() -> None:
    for fields, code in (({"by_person": "ada"}, 1), ({}, 0)):
        scene = Scene(policy="expected_cost")
        scene.spec()
        scene.ended(exit_code=code, **fields)
        scene.last_words()
        assert scene.actions() == ["none"]


def test_an_excluded_type_is_never_restarted() -> None:
    text = "policy: p\nmodes: {crash: {kind: expected_cost, exclude: {error_types: [nccl]}}}"
    assert judged(end(0.99, transient=True), policy=read_policy("p", text.encode())).action == "stop"


COSTS = "policy: p\ndescription: d\nmodes: {crash: {kind: expected_cost, costs: {%s}}}"


def test_costs_are_read_written_and_refused_with_their_line() -> None:
    policy = read_policy("p", (COSTS % "waiting: 30m, wasted_start: 10m, margin: 5").encode())
    assert read_policy("p", policy_text(policy).encode()) == policy
    assert judged(end(0.26), policy=policy).action == "restart"
    assert judged(end(0.24), policy=policy).action == "hold"
    for wrong in ("margin: 0.5", "margin: .nan", "waiting: 6", "patience: 6h"):
        with pytest.raises(RuleErrors):
            read_policy("p", (COSTS % wrong).encode())
    with pytest.raises(RuleErrors, match="weighs no costs"):
        read_policy("p", b"policy: p\nmodes: {crash: {kind: always, costs: {margin: 3}}}")


@given(
    st.floats(0, 1),
    st.floats(0, 1),
    st.sampled_from([True, False, None]),
    st.integers(0, 4),
    st.integers(0, 4),
)
@settings(max_examples=cases(300))
def test_a_better_chance_or_fewer_restarts_in_vain_never_turn_a_restart_down(
    share: float, other: float, transient: bool | None, vain: int, others: int
) -> None:
    low, high = sorted((share, other))
    fewer, more = sorted((vain, others))
    if judged(end(low, transient=transient), Past(in_vain=more)).action == "restart":
        assert judged(end(high, transient=transient), Past(in_vain=fewer)).action == "restart"


def ended(attempt: int, step: int | None, error_type: str = "nccl", **fields: object) -> Incident:
    seen = replace(incident(error_type=error_type), attempt=attempt, **fields)  # type: ignore[arg-type]  # fields that exist
    return replace(seen, verdict=replace(seen.verdict, step=step))


@pytest.mark.parametrize(
    ("before", "after", "passed"),
    [
        (ended(1, 100), ended(2, 140), True),
        (ended(1, 100), ended(2, 140, "oom"), True),
        (ended(1, 100), ended(2, 100), False),
        (ended(1, 100), ended(2, 90, "oom"), False),
        (ended(1, 100), ended(2, None, "config"), False),
        (ended(1, None), ended(2, 3), True),
        (ended(1, None), ended(2, None), False),
        (ended(1, None), ended(2, None, "oom"), None),
        (ended(1, 100), ended(2, 140, state="ended"), None),
    ],
)
def test_a_restart_passed_if_it_got_beyond_the_failure(
    before: Incident, after: Incident, passed: bool | None
) -> None:
    assert has_passed(before, after) is passed


def test_a_healthy_end_passed_and_a_person_s_cancel_says_nothing() -> None:
    healthy = ended(2, None)
    healthy = replace(healthy, verdict=replace(healthy.verdict, state="healthy"))
    assert has_passed(ended(1, 100), healthy) is True
    cancelled = SchedulerFact("local:ada/llm", "i", "1", "R", "CANCELLED", ended=True, by_person="ada")
    assert has_passed(ended(1, 100), ended(2, 50, scheduler=cancelled)) is None


def test_restarts_in_vain_are_counted_in_a_row_and_a_revision_counts_once() -> None:
    known = attempts_in_vain((), ended(1, 100), ended(2, 100))
    assert known == (2,)
    assert attempts_in_vain(known, ended(1, 100), ended(2, 100)) == (2,)
    assert attempts_in_vain(known, ended(1, 100), ended(2, 150)) == ()
    known = attempts_in_vain(known, ended(2, 100), ended(3, 100))
    assert known == (2, 3)
    assert attempts_in_vain(known, ended(3, 100), ended(4, 130)) == ()
    assert attempts_in_vain(known, None, ended(4, 100)) == known


def test_the_same_end_again_and_again_is_given_up_before_the_budget_is_spent() -> None:
    scene = Scene(policy="expected_cost")
    scene.spec()
    for attempt in (1, 2, 3, 4):
        scene.beat("n0")
        scene.train(range(1, 21))
        scene.line("hardware", transient=True)
        scene.ended()
        scene.last_words()
        if scene.decisions[-1].action != "restart":
            break
        scene.accepted(scene.commands[-1])
        scene.incarnation = f"local:{attempt + 1}00:1"
        scene.done(scene.commands[-1], scene.incarnation)
        scene.now += 60
    assert scene.actions()[-1] == "hold"
    assert scene.actions().count("restart") == 2
    assert "halved for each of 2 restarts in vain" in scene.decisions[-1].reason
    assert scene.settled()[0].first_step_s == 1.0
