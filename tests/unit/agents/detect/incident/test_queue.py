"""A job that waits in the scheduler's queue is neither blind nor silent, however long it waits."""

from __future__ import annotations

import pytest

from midwatch.streams.records import Command, SchedulerFact
from unit.agents.detect.incident.scene import JOB, START_S, Scene

pytestmark = pytest.mark.capability("X-21")

WAIT_S = 7200
LONG_WAIT_S = 3 * 86_400


def told(scene: Scene, incarnation: str, old: str, new: str) -> None:
    scene.say(
        SchedulerFact(JOB, incarnation, incarnation.split(":")[1], old, new, ended=False, cluster="slurm")
    )


def waits(scene: Scene, incarnation: str, wait_s: int = WAIT_S) -> None:
    """It is queued, its nodes boot, and it runs, each after hours."""
    told(scene, incarnation, "", "PENDING")
    for old, new in (("PENDING", "CONFIGURING"), ("CONFIGURING", "RUNNING")):
        scene.now += wait_s
        told(scene, incarnation, old, new)


@pytest.mark.parametrize("wait_s", [WAIT_S, LONG_WAIT_S])
def test_a_first_start_may_wait(wait_s: int) -> None:
    scene = Scene(incarnation="slurm:7:0")
    scene.spec(incarnation="slurm:7:0")
    waits(scene, "slurm:7:0", wait_s)
    scene.now += 10
    scene.beat("n0")
    assert (scene.findings("blind"), scene.actions()) == ([], [])


def test_one_that_runs_and_is_not_heard_is_a_blind_spot_again() -> None:
    scene = Scene(incarnation="slurm:7:0")
    scene.spec(incarnation="slurm:7:0")
    waits(scene, "slurm:7:0")
    scene.now += 60
    told(scene, "slurm:7:0", "RUNNING", "RUNNING")
    assert (scene.findings("blind"), scene.actions()) == ([True], ["hold"])


def test_what_was_taken_for_blindness_before_the_queue_was_seen_is_cleared() -> None:
    scene = Scene(incarnation="slurm:7:0")
    scene.spec(incarnation="slurm:7:0")
    scene.now += 60
    waits(scene, "slurm:7:0")
    assert scene.findings("blind") == [True, False]


def test_one_that_is_heard_is_watched_though_the_scheduler_still_says_that_it_waits() -> None:
    scene = Scene(incarnation="slurm:7:0")
    scene.spec(incarnation="slurm:7:0")
    told(scene, "slurm:7:0", "", "PENDING")
    scene.now += WAIT_S
    scene.train(range(1, 21))
    scene.beats(seconds=120)
    assert [i.verdict.mode for i in scene.settled()] == ["stall"]


def test_a_job_that_goes_back_to_the_queue_wakes_nobody_for_its_heartbeats() -> None:
    scene = Scene(incarnation="slurm:7:0")
    scene.spec(incarnation="slurm:7:0")
    scene.train(range(1, 21))
    told(scene, "slurm:7:0", "RUNNING", "PENDING")
    due_ms = scene.watch.job.state.due_ms
    assert due_ms is None or due_ms > (START_S + scene.now + WAIT_S) * 1000


def _restarted(scene: Scene) -> Command:
    scene.spec()
    scene.train(range(1, 21))
    scene.line("nccl", transient=True)
    scene.ended()
    scene.last_words()
    (command,) = scene.commands
    scene.accepted(command)
    return command


def test_across_a_restart_nothing_is_looked_for_until_the_new_attempt_runs() -> None:
    scene = Scene()
    command = _restarted(scene)
    before = len(scene.decisions)
    scene.now += WAIT_S
    scene.done(command, "slurm:200:0")
    scene.now += 5
    waits(scene, "slurm:200:0")
    scene.incarnation = "slurm:200:0"
    scene.sequences.clear()
    scene.now += 5
    scene.beats(seconds=50)
    assert (scene.findings("blind"), len(scene.settled())) == ([], 1)
    assert scene.decisions[before:] == []
    scene.train(range(11, 20))
    scene.beats(seconds=100)
    assert [i.verdict.mode for i in scene.settled()] == ["crash", "stall"], "and then it is looked for again"
