"""A Ray head that was restarted without its Redis has forgotten what it was given: nothing is given twice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from midwatch.agents.executor.reconcile import (
    RAY,
    Finish,
    Memory,
    PendingCommand,
    Remember,
    Step,
    Submit,
    View,
    Wait,
    answered,
    memory,
    next_step,
    with_heartbeat,
)
from midwatch.agents.schedulers.base import Hint, SchedulerEpoch, SchedulerJob, StartState

KEY = "k" * 32
PENDING = PendingCommand("ray:old:s1", KEY)
GONE = StartState("ended", "FAILED", "crash", exit_code=1)


def view(at: float, session: str = "s1", **more: object) -> View:
    seen = View(at, SchedulerEpoch(session, 0.0), False, GONE)
    return replace(seen, **more)  # type: ignore[arg-type]  # fields of View


def step(known: Memory, seen: View) -> Step:
    return next_step(PENDING, known, seen, RAY)


def given() -> Memory:
    made = step(Memory(), view(100.0))
    assert isinstance(made, Submit)
    return memory(made.memory.words())


def test_the_same_head_may_be_asked_again_for_it_refuses_a_second_job() -> None:
    assert isinstance(step(given(), view(101.0)), Wait)
    assert isinstance(step(given(), view(110.0)), Submit)


def test_another_run_of_the_head_never_gets_what_the_last_one_was_given() -> None:
    end = step(given(), view(110.0, "s2"))
    assert isinstance(end, Finish)
    assert (end.result, end.untouched) == ("failed", False)
    assert "has forgotten" in end.reason


def test_what_was_never_sent_may_go_to_the_next_head() -> None:
    unsent = answered(given(), Hint("unsent", "connection refused"))
    assert isinstance(step(unsent, view(110.0, "s2")), Submit)
    unclear = answered(given(), Hint("unclear", "timed out"))
    assert isinstance(step(unclear, view(110.0, "s2")), Finish)


def test_a_start_that_was_seen_and_then_forgotten_is_done_and_named() -> None:
    ours = SchedulerJob(KEY, f"ray:{KEY}:s1", StartState("running", "RUNNING"), KEY)
    known = given()
    for _ in range(2):  # it is chosen, then counts as released
        made = step(known, view(101.0, ours=(ours,)))
        assert isinstance(made, Remember)
        known = made.memory
    end = step(known, view(120.0, "s2", winner=StartState("absent")))
    assert isinstance(end, Finish)
    assert (end.result, end.incarnation) == ("done", f"ray:{KEY}:s1")


@pytest.mark.parametrize("kind", ["queued", "running", "unknown"])
def test_nothing_starts_while_the_old_one_may_live(kind: str) -> None:
    old = StartState(kind)  # type: ignore[arg-type]  # one of the kinds
    assert not isinstance(step(Memory(), view(100.0, old=old)), Submit)


def test_an_old_start_that_the_head_forgot_must_be_missing_for_a_while() -> None:
    absent = StartState("absent")
    missing = step(Memory(), view(100.0, "s2", old=absent))
    assert isinstance(missing, Remember)
    assert isinstance(step(missing.memory, view(105.0, "s2", old=absent)), Wait)
    assert isinstance(step(missing.memory, view(111.0, "s3", old=absent)), Remember), (
        "another run of the head"
    )
    assert isinstance(step(missing.memory, view(111.0, "s2", old=absent)), Submit)


@pytest.mark.parametrize(
    ("state", "believed"),
    [
        (StartState("absent"), False),
        (StartState("ended", "FAILED", "crash", "ray_actor_died"), False),
        (StartState("ended", "FAILED", "crash", exit_code=1), True),
        (StartState("ended", "STOPPED", "ended", "cancelled"), True),
        (StartState("running", "RUNNING"), True),
    ],
)
def test_a_live_process_outweighs_a_head_that_lost_sight_of_it(state: StartState, believed: bool) -> None:
    """A sidecar's heartbeat tells of the process; the head only of what it knows."""
    heard = with_heartbeat(state, 5.0)
    assert (heard == state) is believed
    assert believed or heard.kind == "unknown"
    assert with_heartbeat(state, 21.0) == state
