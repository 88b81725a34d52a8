"""A driver that holds the GPUs that its own tasks wait for is a finding with its remedy, and no act."""

from __future__ import annotations

from midwatch.streams.records import SchedulerFact
from unit.agents.detect.incident.scene import JOB, Scene

START = "ray:a1:session_1"
REMEDY = "its entrypoint holds 8 GPUs: submit it without --entrypoint-num-gpus"


def told(scene: Scene, old: str, new: str, reason: str = "") -> None:
    scene.say(SchedulerFact(JOB, START, "a1", old, new, ended=False, reason=reason, cluster="ray"))


def test_it_is_found_once_and_cleared_when_the_tasks_have_their_gpus() -> None:
    scene = Scene(incarnation=START)
    scene.spec(incarnation=START)
    told(scene, "PENDING", "RUNNING")
    told(scene, "RUNNING", "GPUS_HELD", REMEDY)
    told(scene, "RUNNING", "GPUS_HELD", REMEDY)
    assert scene.findings("gpus_held") == [True]
    told(scene, "GPUS_HELD", "RUNNING")
    assert scene.findings("gpus_held") == [True, False]
    assert set(scene.actions()) <= {"none"}
