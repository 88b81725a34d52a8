"""An attempt fails, no line says why, and its loss had jumped or was no number: a person is told of that."""

from __future__ import annotations

import pytest

from midwatch.streams.records import Verdict
from unit.agents.detect.incident.scene import Scene


def spiked(loss: str, *, back: str = "") -> Scene:
    scene = Scene()
    scene.spec()
    for number in range(1, 40):
        scene.now += 1
        scene.progress(number, loss=loss if number >= 20 else "2.0")
        scene.beat("n0")
    if back:
        scene.now += 1
        scene.progress(40, loss=back)
    return scene


def verdict_of(scene: Scene) -> Verdict:
    scene.last_words()
    return scene.settled()[-1].verdict


@pytest.mark.parametrize(("loss", "kind"), [("31.0", "loss_spike"), ("nan", "numerical_instability")])
def test_an_open_spike_explains_an_end_of_which_no_line_tells(loss: str, kind: str) -> None:
    scene = spiked(loss)
    scene.ended(exit_code=1)
    verdict = verdict_of(scene)
    assert (verdict.error_type, verdict.family, verdict.transient) == (kind, "numerics", None)
    assert (verdict.root_line, verdict.step) == ("step 39", 39)
    assert f"the loss is {loss} at step 20" in verdict.remedy
    assert scene.actions()[-1] == "hold"
    assert scene.commands == []


def test_a_line_or_a_scheduler_that_knows_more_stands_above_it() -> None:
    scene = spiked("nan")
    scene.line("oom", transient=False)
    scene.ended(exit_code=1)
    assert verdict_of(scene).error_type == "oom"
    killed = spiked("nan")
    killed.ended(exit_code=1, error_type="slurm_failure", mode="timeout")
    assert verdict_of(killed).error_type == "slurm_failure"


def test_a_loss_that_came_back_and_a_good_end_leave_the_verdict_alone() -> None:
    back = spiked("31.0", back="2.0")
    back.ended(exit_code=1)
    assert verdict_of(back).error_type == "unknown"
    good = spiked("31.0")
    good.ended(exit_code=0)
    assert verdict_of(good).error_type in ("", "unknown")
