"""Orders for jobs on this machine: what a good one does, and that every other one does nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from executor_world import World, ledger
from midwatch.agents.signing import new_signer
from midwatch.streams.records.effect_keys import command_id, effect_key
from processes import wait_for

pytestmark = pytest.mark.integration


@pytest.mark.capability("S001-55", "S002-05")
def test_a_failed_training_goes_on_from_its_checkpoint_once(world: World) -> None:
    world.executor()
    started, checkpoints = world.train("--fault", "nccl@15:1")
    world.await_end(started)
    order = world.order(started)
    world.send(order)
    done = world.await_outcome(order, "done", "failed")
    wait_for(lambda: bool(ledger(checkpoints, "done")), "the training is done")

    assert done.state == "done"
    assert done.checkpoint_step == 10
    assert [row["first_step"] for row in ledger(checkpoints, "start")] == [1, 11]
    assert not ledger(checkpoints, "overlap")
    keys = [record.key for record in world.effects()]
    assert keys[1:] == [effect_key(started.spec.job, 1, "start")]
    assert done.new_incarnation != started.incarnation
    assert done.old_native_id == started.incarnation.split(":")[1]
    assert [o.state for o in world.outcomes(order)] == ["accepted", "done"]
    ends = [f for f in world.facts(started.spec.job) if f.ended]
    wait_for(
        lambda: any(f.incarnation == done.new_incarnation and f.ended for f in world.facts(started.spec.job)),
        "the watcher sees the end of the new start",
    )
    assert ends[0].exit_code == 1
    assert not ends[0].by_person


def test_a_hung_training_is_ended_before_the_next_start(world: World) -> None:
    world.executor()
    started, checkpoints = world.train("--fault", "hang@15:1")
    wait_for(lambda: bool(ledger(checkpoints, "fault")), "the training hangs")
    order = world.order(started)
    world.send(order)
    assert world.await_outcome(order, "done", "failed").state == "done"
    wait_for(lambda: bool(ledger(checkpoints, "done")), "the training is done")

    assert [row["first_step"] for row in ledger(checkpoints, "start")] == [1, 11]
    assert not ledger(checkpoints, "overlap")
    world.await_end(started)
    (end,) = [f for f in world.facts(started.spec.job) if f.ended and f.incarnation == started.incarnation]
    assert not end.by_person, "our own end is no person's act"


@pytest.mark.parametrize(
    ("case", "word"),
    [
        ("expired", "after its time"),
        ("older incarnation", "never ran as"),
        ("unknown spec", "no spec"),
        ("wrong id", "its id"),
        ("parameter", "parameter"),
    ],
)
def test_an_order_that_shows_not_all_it_must_is_refused_and_does_nothing(
    world: World, case: str, word: str
) -> None:
    world.executor()
    started = world.run("sleep", "300")
    order = world.order(started)
    order = {
        "expired": world.order(started, expires_ms=1),
        "older incarnation": world.order(started, incarnation="local:1:1"),
        "unknown spec": world.order(started, spec="0" * 64),
        "wrong id": world.order(started, id=command_id(started.spec.job, 9, 9)),
        "parameter": world.order(started, parameters={"argv": "rm"}),
    }[case]
    world.send(order)
    outcome = world.await_outcome(order, "refused", "expired", "accepted")

    assert outcome.state == ("expired" if case == "expired" else "refused")
    assert word in outcome.reason
    assert len(world.effects()) == 1
    assert world.effects()[0].code is None, "the job still runs"


def test_an_order_that_a_stranger_signed_is_answered_nowhere_and_the_next_one_is_carried_out(
    world: World,
) -> None:
    world.executor()
    started = world.run("sleep", "300")
    order = world.order(started, action="cancel")
    world.send(replace(order, signature=""))
    world.send(new_signer().sign(order))
    world.send(order)
    assert world.await_outcome(order, "done", "failed").state == "done"

    letters = world.dead_letters()
    assert [letter.kind for letter in letters] == ["unsigned", "unsigned"]
    assert all("not signed by this installation's key" in letter.reason for letter in letters)
    assert {o.state for o in world.outcomes(order)} == {"accepted", "done"}


def test_an_order_delivered_twice_has_one_effect(world: World) -> None:
    world.executor()
    started, checkpoints = world.train("--fault", "exception@15:1")
    world.await_end(started)
    order, again = world.order(started), world.order(started, seq=2)
    for _ in range(3):
        world.send(order)
    world.await_outcome(order, "done")
    world.send(order)
    world.send(again)
    refused = world.await_outcome(again, "refused", "accepted")
    wait_for(lambda: bool(ledger(checkpoints, "done")), "the training is done")

    assert refused.state == "refused"
    assert len(ledger(checkpoints, "start")) == 2
    assert len(world.effects()) == 2


def test_who_is_not_armed_is_not_touched(world: World) -> None:
    world.executor()
    started = world.run("sleep", "300", armed=False)
    order = world.order(started)
    world.send(order)
    assert "nobody armed it" in world.await_outcome(order, "refused", "accepted").reason
    assert len(world.effects()) == 1


def test_a_cancel_ends_the_job_and_starts_nothing(world: World) -> None:
    world.executor()
    started = world.run("sleep", "300")
    order = world.order(started, action="cancel")
    world.send(order)
    done = world.await_outcome(order, "done", "failed")
    assert done.state == "done"
    assert done.new_native_id == ""
    world.await_end(started)
    (end,) = [f for f in world.facts(started.spec.job) if f.ended]
    assert not end.by_person
    assert len(world.effects()) == 1


def test_a_second_executor_on_the_same_state_directory_is_told_so(world: World) -> None:
    world.executor()
    second = world.executor()
    assert second.wait(timeout=30) == 3
    assert "another executor runs with this state directory" in world.log.read_text()
