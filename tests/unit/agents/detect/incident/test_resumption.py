"""Whether a new start went on from the checkpoint that it was told to load: its first step says so."""

from __future__ import annotations

import pytest

from midwatch.streams.records import Finding, Outcome
from unit.agents.detect.incident.scene import FIRST, JOB, START_S, Scene

SECOND = "local:200:2"


def restarted(
    *,
    first: range,
    second: range,
    checkpoint: int | None,
    step: int = 1,
    late: bool = False,
    written: float | None = None,
    told: bool = True,
) -> Scene:
    """A job that died after `first` and was started again. `late`: its outcome comes after its first step."""
    scene = Scene()
    scene.spec(incarnation=FIRST)
    for number in first[::step]:
        scene.now += 1
        scene.progress(number)
    scene.line("nccl", transient=True)
    scene.ended()
    scene.last_words()
    command = scene.commands[-1]
    scene.accepted(command)
    outcome = Outcome(
        JOB,
        command.id,
        1,
        "restart",
        "done",
        "ok",
        new_incarnation=SECOND,
        checkpoint_step=checkpoint,
        checkpoint=f"/ckpt/step_{checkpoint}" if checkpoint is not None and told else "",
        checkpoint_written_ms=0 if written is None else int((START_S + written) * 1000),
    )
    scene.incarnation = SECOND
    scene.sequences.clear()
    if not late:
        scene.say(outcome)
    for number in second[::step]:
        scene.now += 1
        scene.progress(number)
    if late:
        scene.say(outcome)
    return scene


def said(scene: Scene) -> list[str]:
    return [r.detail for r in scene.records if isinstance(r, Finding) and r.kind == "resumed"]


def ignored(scene: Scene) -> list[Finding]:
    return [r for r in scene.records if isinstance(r, Finding) and r.kind == "checkpoint_ignored"]


@pytest.mark.parametrize("late", [False, True])
def test_resumed_from_is_said_once_the_first_step_is_seen(late: bool) -> None:
    scene = restarted(first=range(1, 46), second=range(41, 50), checkpoint=40, late=late)
    assert said(scene) == ["resumed from 40: its first step is 41; 5 steps lost"]
    assert not ignored(scene)


def test_before_the_first_step_nothing_is_said() -> None:
    assert not said(restarted(first=range(1, 46), second=range(0), checkpoint=40))


def test_a_job_that_prints_every_tenth_step_resumes_within_ten() -> None:
    scene = restarted(first=range(10, 101), second=range(60, 90), checkpoint=55, step=10)
    assert said(scene) == ["resumed from 55: its first step is 60; 45 steps lost"]


def test_a_first_step_far_above_the_checkpoint_is_no_resume_from_it() -> None:
    scene = restarted(first=range(1, 61), second=range(51, 60), checkpoint=40)
    assert said(scene) == ["went on at 51, and was told the checkpoint of step 40; 20 steps lost"]


def test_where_counters_start_at_zero_the_checkpoints_own_number_is_a_resume() -> None:
    assert said(restarted(first=range(46), second=range(40, 50), checkpoint=40))[0].startswith(
        "resumed from 40"
    )
    assert said(restarted(first=range(1, 46), second=range(40, 50), checkpoint=40))[0].startswith(
        "went on at 40"
    )


def test_a_start_that_begins_below_a_complete_checkpoint_is_a_finding_with_its_remedy() -> None:
    scene = restarted(first=range(1, 46), second=range(1, 10), checkpoint=40)
    (finding,) = ignored(scene)
    assert finding.open
    assert finding.detail.startswith("went on at 1, below the checkpoint of step 40")
    assert "--resume-arg" in finding.detail
    assert finding.quantities["steps_lost"] == "5"
    assert not said(scene)
    assert scene.decisions[-1].action == "none"
    assert scene.watch.job.state.step == 9, "the clock of a stall still sees its steps"


def test_such_a_start_uses_the_budget_like_any_other() -> None:
    scene = restarted(first=range(1, 46), second=range(1, 10), checkpoint=40)
    scene.line("nccl", transient=True)
    scene.ended()
    scene.last_words()
    assert (scene.decisions[-1].action, scene.decisions[-1].restart_number) == ("restart", 2)


def test_steps_of_another_unit_than_the_checkpoints_prove_nothing() -> None:
    scene = restarted(first=range(1, 10), second=range(1, 5), checkpoint=4000)
    assert said(scene) == ["went on at 1, and was told the checkpoint of step 4000"]
    assert not ignored(scene)


def test_the_age_of_the_checkpoint_is_told() -> None:
    scene = restarted(first=range(1, 46), second=range(41, 43), checkpoint=40, written=15.0)
    assert said(scene) == [
        "resumed from 40: its first step is 41; the checkpoint was written 30 s before; 5 steps lost"
    ]


@pytest.mark.parametrize("checkpoint", [None, 40])
def test_of_a_start_that_was_told_nothing_nothing_is_said(checkpoint: int | None) -> None:
    scene = restarted(first=range(1, 46), second=range(1, 10), checkpoint=checkpoint, told=False)
    assert not said(scene)
    assert not ignored(scene)
