"""The head dies: what runs is never doubled, and no command is lost without a word.

Without its Redis a new head has forgotten all jobs, and takes each id anew. With it the ids survive.
"""

from __future__ import annotations

import random
import secrets
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from executor_world import ledger
from faults.chaos.rounds import FULL, ROUNDS, seed_of
from faults.chaos.tally import Count, counting
from faults.ray.orders import RayOrder, RayStage, over
from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.streams.records import Command
from processes import wait_for
from ray_lab.fixture import ray_running
from ray_lab.lab import RayLab
from ray_lab.world import RayWorld, Trained
from side_by_side import Scenes

pytestmark = pytest.mark.integration

TIMES = ROUNDS if FULL else 1


@contextmanager
def staged(directory: Path, stack: Endpoints, count: Count, lab: RayLab) -> Iterator[RayStage]:
    place = directory / secrets.token_hex(4)
    place.mkdir()
    world = RayWorld(place, stack, lab)
    try:
        yield RayStage(world, random.Random(count.seed), count)
    finally:
        world.close()


def test_a_start_that_still_waits_is_proven_stopped_before_the_next_one(
    stack: Endpoints, tmp_path: Path, ray_head: RayLab
) -> None:
    """Ray answers the stop of a pending job at once, and may still start it for a moment."""
    case = "stop while pending"
    with counting("ray", case, seed_of(f"ray/{case}")) as count:
        world = RayWorld(tmp_path, stack, ray_head)
        try:
            for _ in range(TIMES):
                _stopped_while_pending(world, count)
        finally:
            world.close()


def _stopped_while_pending(world: RayWorld, count: Count) -> None:
    hog = world.submit("sleep", "600", options=("--entrypoint-num-gpus=8",))
    executor = world.executor()
    trained = world.train_on_ray(options=("--entrypoint-num-gpus=8",))
    assert world.lab.job(trained.first)["status"] == "PENDING"
    command = world.order(trained.started)
    world.send(command)
    wait_for(lambda: "→ cancel" in world.log.read_text(), "the stop", 60)
    count.hit("stopped while pending")
    assert world.lab.job(trained.first)["status"] == "PENDING"
    assert world.lab.job(trained.key)["status"] == "404"
    world.lab.api("POST", f"/api/jobs/{hog.incarnation.split(':')[1]}/stop")
    assert world.await_outcome(command, "done", "failed", limit=90).state == "done"
    wait_for(lambda: bool(ledger(trained.checkpoints, "done")), "the training is done", 90)
    assert world.lab.job(trained.first)["status"] == "STOPPED"
    count.add(overlaps=len(ledger(trained.checkpoints, "overlap")))
    assert ledger(trained.checkpoints, "overlap") == []
    executor.terminate()
    executor.wait(timeout=30)


scenes = Scenes()
played = scenes.fixture("stack", "ray_session")


@scenes.scene
def test_a_head_that_forgot_gets_no_start_twice_and_the_next_attempt_goes_on(
    stack: Endpoints, tmp_path: Path, ray_session: RayLab
) -> None:
    case = "head killed without Redis"
    ray_session.clear()
    with counting("ray", case, seed_of(f"ray/{case}")) as count:
        for _ in range(2 * ROUNDS if FULL else 1):
            with (
                staged(tmp_path, stack, count, ray_session) as dead,
                staged(tmp_path, stack, count, ray_session) as alive,
            ):
                _killed_without_redis(dead, alive)


def _killed_without_redis(dead: RayStage, alive: RayStage) -> None:
    """Two installations share the head that dies, and the next head knows nothing.

    The executor of one gave a start to the head and died before. That of the other lives on: the training
    that it knows begins again on the next head, while that head is asked for the forgotten start.
    """
    lab = alive.world.lab
    alive.world.executor()
    code = alive.world.directory / "code"
    code.mkdir()
    (code / "marker").write_text("packed")
    trained = alive.world.train_on_ray("--fault=hang@15:1", options=("--working-dir", str(code)))
    victim = dead.world.executor(failpoint="record")
    order = dead.order("it failed")
    assert victim.wait(timeout=90) == -signal.SIGKILL
    lab.wait_status(order.trained.key, "PENDING", "RUNNING", "SUCCEEDED", "FAILED")
    wait_for(lambda: bool(ledger(trained.checkpoints, "fault")), "the training hangs", 60)
    alive.world.announced(trained)
    before = lab.session()
    lab.kill_head()
    alive.count.hit("head killed")
    (code / "marker").unlink()
    lab.boot()
    assert lab.session() != before
    assert lab.submissions() == []
    dead.world.executor()
    command = alive.world.order(trained.started)
    alive.world.send(command)
    _forgotten(dead, order)
    _goes_on(alive, trained, command)
    assert [job["submission_id"] for job in lab.submissions()] == [trained.key]


def _forgotten(stage: RayStage, order: RayOrder) -> None:
    """What the head has forgotten is not started a second time, and no later command does it either."""
    world = stage.world
    outcome = world.await_outcome(order.command, "failed", "done", limit=90)
    assert (outcome.state, "has forgotten" in outcome.reason) == ("failed", True)
    again = world.order(order.trained.started, seq=2)
    world.send(again)
    assert world.await_outcome(again, "refused", "done").state == "refused"
    starts = ledger(order.trained.checkpoints, "start")
    stage.count.add(starts=len(starts), twice=max(0, len(starts) - 2))
    stage.count.add(overlaps=len(ledger(order.trained.checkpoints, "overlap")))
    assert len(starts) <= 2


def _goes_on(stage: RayStage, trained: Trained, command: Command) -> None:
    """A training ran when the head died. It goes on once, with the code that the head has lost."""
    world = stage.world
    world.await_end(trained.started)
    fact = next(f for f in world.facts(trained.started.spec.job) if f.ended)
    assert fact.new == "ABSENT"
    assert world.await_outcome(command, "done", "failed", "refused", limit=90).state == "done"
    wait_for(lambda: over(trained), "the training is done", 90)
    stage.count.add(starts=2, overlaps=len(ledger(trained.checkpoints, "overlap")))
    assert [row["first_step"] for row in ledger(trained.checkpoints, "start")] == [1, 11]
    assert ledger(trained.checkpoints, "overlap") == []
    world.lab.wait_status(trained.key, "SUCCEEDED")


@scenes.scene
def test_a_head_that_kept_its_redis_knows_each_start_and_a_dead_raylet_only_delays(
    stack: Endpoints, tmp_path: Path
) -> None:
    case = "head killed with Redis"
    with counting("ray", case, seed_of(f"ray/{case}")) as count:
        for _ in range(TIMES):
            with ray_running(redis=True) as lab, staged(tmp_path, stack, count, lab) as stage:
                _killed_with_redis(stage)


def _killed_with_redis(stage: RayStage) -> None:
    """One start was given when the executor died, and one training runs when the raylet and the head die."""
    world = stage.world
    victim = world.executor(failpoint="record")
    given = stage.order("it failed")
    assert victim.wait(timeout=90) == -signal.SIGKILL
    running = world.train_on_ray("--fault=hang@15:1")
    wait_for(lambda: bool(ledger(running.checkpoints, "fault")), "the training hangs", 60)
    before = world.lab.session()
    world.lab.kill("raylet/raylet")
    stage.count.hit("raylet killed")
    world.executor()
    command = world.order(running.started)
    world.send(command)
    # Ray says RUNNING for ever, refuses to stop, and would refuse to start: the command waits.
    wait_for(lambda: "running → cancel" in world.log.read_text(), "the executor tries to stop it", 60)
    assert world.lab.job(running.first)["status"] == "RUNNING"
    assert world.lab.job(running.key)["status"] == "404"
    world.lab.kill_head()
    stage.count.hit("head with Redis killed")
    world.lab.boot()
    assert world.lab.session() == before
    assert world.await_outcome(given.command, "done", "failed", limit=90).state == "done"
    assert world.await_outcome(command, "done", "failed", limit=120).state == "done"
    wait_for(lambda: over(running), "the training is done", 90)
    assert world.lab.job(running.first)["status"] == "FAILED"
    for trained in (given.trained, running):
        starts = ledger(trained.checkpoints, "start")
        stage.count.add(starts=len(starts), twice=max(0, len(starts) - 2))
        stage.count.add(overlaps=len(ledger(trained.checkpoints, "overlap")))
        assert len(starts) <= 2
        assert ledger(trained.checkpoints, "overlap") == []
    assert [row["first_step"] for row in ledger(running.checkpoints, "start")] == [1, 11]
