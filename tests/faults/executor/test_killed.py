"""Whatever is killed, and wherever: one order, one start, and never two alive."""

from __future__ import annotations

import signal
import time

import pytest

from executor_world import World, ledger
from midwatch.agents.effects import effect_key
from processes import wait_for

pytestmark = pytest.mark.integration


POINTS = ("accept", "claim", "act", "record", "close")


@pytest.mark.capability("N-5")
@pytest.mark.parametrize(
    ("fault", "point"),
    [
        *(("exception", point) for point in POINTS),
        *(("hang", point) for point in (*POINTS, "act:2", "record:2")),  # it is ended first, then started
    ],
)
def test_an_executor_killed_on_its_way_starts_the_training_exactly_once(
    world: World, fault: str, point: str
) -> None:
    doomed = world.executor(failpoint=point)
    started, checkpoints = world.train("--fault", f"{fault}@15:1")
    wait_for(lambda: bool(ledger(checkpoints, "fault")), "the training fails")
    if fault == "exception":
        world.await_end(started)
    order = world.order(started)
    world.send(order)
    assert doomed.wait(timeout=60) == -signal.SIGKILL

    world.executor()
    done = world.await_outcome(order, "done", "failed", "refused")
    wait_for(lambda: bool(ledger(checkpoints, "done")), "the training is done")
    assert done.state == "done"
    assert [row["first_step"] for row in ledger(checkpoints, "start")] == [1, 11]
    assert not ledger(checkpoints, "overlap")
    assert [record.key for record in world.effects()][1:] == [effect_key(started.spec.job, 1, "start")]


def test_a_killed_executor_leaves_its_jobs_running(world: World) -> None:
    executor = world.executor()
    started, checkpoints = world.train("--fault", "exception@15:1", "--iteration-ms", "100")
    world.await_end(started)
    order = world.order(started)
    world.send(order)
    world.await_outcome(order, "done")
    executor.kill()
    executor.wait()
    wait_for(lambda: bool(ledger(checkpoints, "done")), "the training is done", 60)
    wait_for(lambda: bool(ledger(checkpoints, "done")), "the training is done")
    assert len(ledger(checkpoints, "start")) == 2


def test_a_redis_that_has_forgotten_does_not_let_an_old_order_act_again(world: World) -> None:
    executor = world.executor()
    started, checkpoints = world.train("--fault", "exception@15:1")
    world.await_end(started)
    old = world.order(started)
    executor.terminate()
    assert executor.wait(timeout=30) == 0
    world.forget()
    world.send(old)
    world.executor()
    answer = world.await_outcome(old, "expired", "accepted")
    assert answer.state == "expired"
    assert "loss of Redis" in answer.reason

    fresh = world.order(started, seq=2)
    world.send(fresh)
    assert world.await_outcome(fresh, "done", "refused", "failed").state == "done"
    wait_for(lambda: bool(ledger(checkpoints, "done")), "the training is done")
    assert len(ledger(checkpoints, "start")) == 2


def test_a_redis_lost_under_a_running_executor_ends_its_open_orders_and_says_so(world: World) -> None:
    world.executor()
    started = world.run("sleep", "300")
    later = world.order(started, not_before_ms=int(time.time() * 1000) + 120_000)
    world.send(later)
    world.await_outcome(later, "accepted")
    world.forget()
    assert "Redis lost the claim" in world.await_outcome(later, "expired", "done").reason

    now = world.order(started, seq=2)
    world.send(now)
    assert world.await_outcome(now, "done", "refused", "failed").state == "done"
    assert len(world.effects()) == 2
