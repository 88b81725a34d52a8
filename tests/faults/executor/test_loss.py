"""An executor that dies, or whose Redis forgets: what runs goes on, and no old order acts again."""

from __future__ import annotations

import signal
import time
from functools import partial

import pytest

from executor_world import World, ledger
from midwatch.agents.local.embedded.stack import Endpoints
from processes import wait_for

pytestmark = pytest.mark.integration


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


def test_a_redis_lost_while_no_executor_runs_ends_what_the_last_one_had_accepted(world: World) -> None:
    """Its message is committed, so that it never comes again: the next executor must speak for it."""
    executor = world.executor()
    started = world.run("sleep", "300")
    later = world.order(started, not_before_ms=int(time.time() * 1000) + 120_000)
    world.send(later)
    world.await_outcome(later, "accepted")
    executor.terminate()
    assert executor.wait(timeout=30) == 0
    world.forget()
    world.executor()
    assert "Redis lost the claim" in world.await_outcome(later, "expired", "done").reason

    now = world.order(started, seq=2)
    world.send(now)
    assert world.await_outcome(now, "done", "refused", "failed").state == "done"
    assert len(world.effects()) == 2


def test_a_name_of_an_earlier_life_is_rescued_although_its_old_start_is_still_on_the_disk(
    world: World, stack: Endpoints
) -> None:
    """Kafka and Redis were wiped, the state directory was not: attempt 1 of that name comes again.

    In its second life the executor dies with the order just claimed, so that the watcher of the next one has
    looked before anybody works on it: it must not take that old start for one of the present life.
    """
    for number in (1, 2):
        life = world if number == 1 else World(world.directory, stack)
        executor = life.executor(failpoint="claim" if number == 2 else "")
        started, checkpoints = life.train("--fault", "exception@15:1", job="again")
        life.await_end(started)
        order = life.order(started)
        life.send(order)
        if number == 2:
            assert executor.wait(timeout=60) == -signal.SIGKILL
            executor = life.executor()
        assert life.await_outcome(order, "done", "failed", "refused", "expired").state == "done"
        wait_for(partial(ledger, checkpoints, "done"), "the training is done")
        assert [row["first_step"] for row in ledger(checkpoints, "start")] == [1, 11]
        executor.terminate()
        assert executor.wait(timeout=30) == 0
        life.close()
