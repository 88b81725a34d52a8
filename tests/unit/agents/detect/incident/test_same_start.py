"""A start that had worked before and fails before its first step may pass. A person's start proves itself."""

from __future__ import annotations

from typing import Any

import pytest

from unit.agents.detect.incident.scene import FIRST, Scene

SECOND, THIRD = "local:200:2", "local:300:3"
AGAIN = "local:100:2"  # the scheduler's own next start of FIRST
NOT_MET = {"error_type": "rendezvous", "transient": True, "text": "the toy's ranks did not meet"}
NO_ANSWER = {"error_type": "communication", "text": "the toy hub timed out"}


def rescued(*, steps: int = 20) -> Scene:
    """A job that trained and failed of what may pass. Its restart is ordered."""
    scene = Scene()
    scene.spec(incarnation=FIRST)
    scene.train(range(1, 1 + steps))
    scene.line("hardware", transient=True)
    scene.ended()
    scene.last_words()
    return scene


def goes_on(scene: Scene, incarnation: str) -> None:
    scene.incarnation = incarnation
    scene.sequences.clear()
    scene.now += 1


def started_by_command(scene: Scene, incarnation: str) -> None:
    command = scene.commands[-1]
    scene.accepted(command)
    scene.done(command, incarnation)
    goes_on(scene, incarnation)


def failed_at_once(scene: Scene, line: dict[str, Any]) -> None:
    scene.line(subsystem="network", **line)
    scene.ended()
    scene.last_words()


@pytest.mark.parametrize("line", [NOT_MET, NO_ANSWER])
def test_what_a_restarted_job_meets_before_its_first_step_is_restarted(line: dict[str, Any]) -> None:
    scene = rescued()
    started_by_command(scene, SECOND)
    failed_at_once(scene, line)
    assert scene.actions() == ["restart", "restart"]
    started_by_command(scene, THIRD)
    failed_at_once(scene, line)
    assert scene.actions() == ["restart", "restart", "restart"]


@pytest.mark.parametrize("line", [NOT_MET, NO_ANSWER])
def test_of_a_start_that_never_made_a_step_it_is_held(line: dict[str, Any]) -> None:
    scene = rescued(steps=0)
    started_by_command(scene, SECOND)
    failed_at_once(scene, line)
    assert scene.actions() == ["restart", "hold"]


def test_a_restarted_job_that_hangs_before_its_first_step_is_restarted() -> None:
    scene = rescued()
    started_by_command(scene, SECOND)
    scene.beats(seconds=400)
    assert scene.settled()[-1].verdict.error_type == "hang"
    assert scene.actions() == ["restart", "restart"]


@pytest.mark.parametrize("line", [NOT_MET, NO_ANSWER])
def test_a_person_may_have_changed_the_start_that_they_made(line: dict[str, Any]) -> None:
    scene = rescued()
    goes_on(scene, SECOND)
    scene.spec(incarnation=SECOND)
    failed_at_once(scene, line)
    assert scene.actions() == ["restart", "hold"]


def test_a_restart_of_a_person_s_start_proves_no_more_than_that_start_did() -> None:
    scene = rescued()
    goes_on(scene, SECOND)
    scene.spec(incarnation=SECOND)
    scene.line("hardware", transient=True)
    scene.ended()
    scene.last_words()
    started_by_command(scene, THIRD)
    failed_at_once(scene, NOT_MET)
    assert scene.actions() == ["restart", "restart", "hold"]


def test_the_scheduler_s_own_next_start_of_a_job_is_the_same() -> None:
    scene = rescued()
    goes_on(scene, AGAIN)
    failed_at_once(scene, NOT_MET)
    assert scene.actions() == ["restart", "restart"]
