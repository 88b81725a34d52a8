"""Whether a new start went on from the checkpoint that it was told to load: its first step says so."""

from __future__ import annotations

import pytest

from midwatch.agents.detect.incident.resumption import EPOCH_LINES
from midwatch.rules.loader import load_bundle
from midwatch.streams.records import CheckpointChoice, Finding, Outcome
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
    assert said(scene) == ["went on at 51, and was told the checkpoint of step 40; 10 steps lost"]


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


@pytest.mark.capability("S000-11")
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


CHOICE = CheckpointChoice(50, "/ckpt/step_50", "step", int((START_S + 15) * 1000))


def chosen(*, second: range, checkpoint: CheckpointChoice, heartbeat_first: bool = True) -> Scene:
    """A job whose second start waited in a queue, and chose its checkpoint when it began."""
    scene = restarted(first=range(1, 56), second=range(0), checkpoint=40, told=False)
    if heartbeat_first:
        scene.beat("n0", checkpoint=checkpoint)
    for number in second:
        scene.now += 1
        scene.progress(number)
    scene.beat("n0", checkpoint=checkpoint)
    return scene


def test_what_a_start_chose_for_itself_is_what_it_is_held_to() -> None:
    scene = chosen(second=range(51, 55), checkpoint=CHOICE)
    findings = [r for r in scene.records if isinstance(r, Finding) and r.kind == "resumed"]
    assert [f.detail for f in findings] == [
        "was told to load the checkpoint of step 50, written 40 s before",
        "resumed from 50: its first step is 51; the checkpoint was written 40 s before; 5 steps lost",
    ]
    assert {f.quantities["checkpoint"] for f in findings} == {"/ckpt/step_50"}
    assert scene.watch.job.state.checkpoint_step == 50, "not what the executor saw at the release"


def test_a_first_step_that_overtakes_the_heartbeat_is_judged_by_the_choice_too() -> None:
    scene = chosen(second=range(1, 4), checkpoint=CHOICE, heartbeat_first=False)
    (finding,) = ignored(scene)
    assert finding.detail.startswith("went on at 1, below the checkpoint of step 50")
    assert not said(scene)


def test_a_checkpoint_that_counts_epochs_is_not_compared_with_steps() -> None:
    epoch = CheckpointChoice(3, "/ckpt/epoch_3", "epoch")
    scene = chosen(second=range(1, 4), checkpoint=epoch)
    assert said(scene)[-1] == "went on at step 1, and was told the checkpoint of epoch 3"
    assert not ignored(scene)


@pytest.mark.parametrize(("rule", "form"), [("epoch_counted", "{}"), ("epoch_batch", "{}:10")])
@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (4, "resumed from epoch 3: its first epoch is 4; 2 epochs lost"),
        (3, "resumed from epoch 3: its first epoch is 3; 2 epochs lost"),
        (6, "went on at epoch 6, and was told the checkpoint of epoch 3; 0 epochs lost"),
        (1, ""),
    ],
)
def test_a_checkpoint_that_counts_epochs_is_compared_with_the_epochs_that_the_job_prints(
    first: int, expected: str, rule: str, form: str
) -> None:
    scene = Scene()
    scene.spec(incarnation=FIRST)
    for number in range(1, 6):
        scene.now += 1
        scene.progress(-1, count=form.format(number), rule=rule)
    scene.incarnation = SECOND
    scene.sequences.clear()
    scene.beat("n0", checkpoint=CheckpointChoice(3, "/ckpt/epoch_3", "epoch"))
    scene.progress(-1, count=form.format(first), rule=rule)
    assert said(scene)[1:] == ([expected] if expected else [])
    assert [f.detail[:46] for f in ignored(scene)] == (
        [] if expected else ["went on at epoch 1, below the checkpoint of ep"]
    )


def test_what_a_start_chose_is_told_where_the_job_prints_epochs_and_batches_alone() -> None:
    scene = Scene()
    scene.spec(incarnation=FIRST)
    scene.progress(-1, count="1:25", rule="epoch_batch")
    scene.incarnation = SECOND
    scene.sequences.clear()
    scene.progress(-1, count="1:21", rule="epoch_batch")
    for _ in range(2):
        scene.beat("n0", checkpoint=CheckpointChoice(20, "/ckpt/step_20", "step"))
    assert said(scene) == ["was told to load the checkpoint of step 20"]


def test_the_rule_that_counts_epochs_is_shipped_under_that_name() -> None:
    assert {rule.name for rule in load_bundle("default").rules} >= EPOCH_LINES
