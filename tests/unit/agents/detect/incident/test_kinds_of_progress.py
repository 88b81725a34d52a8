"""What of progress shows that a run trains, and what ends a silence: steps, epochs and batches, checkpoints,
numbers that climb."""

from __future__ import annotations

import pytest

from midwatch.streams.records import CheckpointChoice, Incident, SchedulerFact, Shows
from unit.agents.detect.incident.scene import FIRST, JOB, START_S, Scene


def _timed_out(scene: Scene) -> str:
    """What is decided when a collective then times out."""
    scene.line("nccl_timeout", role="consequence", transient=True)
    scene.ended(exit_code=1)
    scene.last_words()
    return scene.actions()[-1]


def _scene() -> Scene:
    scene = Scene()
    scene.spec()
    scene.beat("n0")
    return scene


@pytest.mark.parametrize(
    ("counts", "shows", "action"),
    [
        (["1", "2", "3"], "step", "restart"),
        (["1", "2"], "step", "hold"),
        (["3", "2", "1"], "step", "hold"),
        (["0:1"], "step", "restart"),  # an epoch and its batch
        (["0:0"], "step", "hold"),
        (["1", "2", "3"], "climb", "restart"),
        (["0:1"], "climb", "hold"),
        (["fast", "faster", "fastest"], "climb", "hold"),
        (["1", "2", "3"], "life", "hold"),
        ([""], "training", "restart"),  # a checkpoint that is complete
    ],
)
def test_what_a_loop_counts_shows_that_it_trains(counts: list[str], shows: Shows, action: str) -> None:
    scene = _scene()
    for count in counts:
        scene.now += 1
        scene.progress(-1, count=count, shows=shows)
    assert _timed_out(scene) == action


@pytest.mark.parametrize(
    ("written", "path", "action"),
    [
        (30.0, "/ckpt/step_40", "restart"),
        (-30.0, "/ckpt/step_40", "hold"),  # an earlier run wrote it
        (30.0, "/ckpt/step_20", "hold"),  # the one that this start was told to load; the clocks differ
        (None, "", "hold"),
    ],
)
def test_a_complete_checkpoint_that_the_run_wrote_shows_that_it_trained(
    written: float | None, path: str, action: str
) -> None:
    scene = Scene()
    scene.spec(incarnation=FIRST)
    scene.beat("n0", checkpoint=CheckpointChoice(20, "/ckpt/step_20"))
    scene.now = 60
    scene.beat("n0")
    scene.line("nccl_timeout", role="consequence", transient=True)
    saved = CheckpointChoice(40, path, "step", int((START_S + (written or 0)) * 1000))
    scene.ended(exit_code=1, saved=saved if written is not None else None)
    scene.last_words()
    assert scene.actions()[-1] == action


@pytest.mark.parametrize(("late", "hangs"), [(0.0, False), (200.0, True)])
def test_a_new_complete_checkpoint_ends_a_silence_unless_it_is_told_late(late: float, hangs: bool) -> None:
    """The limit is 300 s at the start. A checkpoint comes after 240 s, and its fact at once or much later."""
    scene = Scene()
    scene.spec(incarnation=FIRST)
    scene.beat("n0")
    scene.beats(seconds=240)
    written = scene.now
    if late:
        scene.beats(seconds=late - 150)
    saved = CheckpointChoice(40, "/ckpt/step_40", "step", int((START_S + written - late) * 1000))
    scene.say(SchedulerFact(JOB, FIRST, "100", "RUNNING", "RUNNING", False, saved=saved))
    scene.beats(seconds=120)
    assert bool(scene.watch.job.state.stalled) is hangs


def test_a_loss_without_a_step_shows_that_it_trains() -> None:
    scene = _scene()
    scene.progress(-1, loss="2.1")
    assert _timed_out(scene) == "restart"


def test_counts_of_two_kinds_are_never_mixed() -> None:
    scene = _scene()
    for number, rule in enumerate(("files", "shards", "tries", "files")):
        scene.now += 1
        scene.progress(-1, count=str(number), rule=rule)
    assert _timed_out(scene) == "hold"


def test_evaluating_is_no_training() -> None:
    scene = _scene()
    for number in range(5):
        scene.now += 1
        scene.progress(-1, count=str(number), phase="evaluation")
    assert _timed_out(scene) == "hold"


def test_a_batch_that_counts_anew_in_the_next_epoch_goes_on() -> None:
    scene = _scene()
    scene.progress(-1, count="1:900")
    scene.line("exception", transient=False)
    for count in ("1:901", "2:10", "2:20"):
        scene.now += 1
        scene.progress(-1, count=count)
    assert [r.state for r in scene.records if isinstance(r, Incident)] == ["suspected", "withdrawn"]


def test_numbers_that_climb_never_end_a_silence() -> None:
    scene = _scene()
    scene.train(range(1, 21))
    for number in range(40):
        scene.beats(seconds=5)
        scene.progress(-1, count=str(number), shows="climb")
    assert [r.verdict.mode for r in scene.records if isinstance(r, Incident)][-1] == "stall"


def test_numbers_that_climb_do_not_take_a_failure_back() -> None:
    scene = _scene()
    scene.line("exception", transient=False)
    for number in range(9):
        scene.now += 1
        scene.progress(-1, count=str(number), shows="climb")
    assert [r.state for r in scene.records if isinstance(r, Incident)] == ["suspected"]


def test_a_checkpoint_ends_a_silence() -> None:
    scene = _scene()
    scene.train(range(1, 21))
    for _ in range(8):
        scene.beats(seconds=40)
        scene.progress(-1, shows="training")
    assert [r for r in scene.records if isinstance(r, Incident)] == []
