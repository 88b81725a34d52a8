"""A spike opens once and clears once; a loss that is no number is a spike at any time."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midwatch.rules.detectors.base import Opened, StepSeen
from midwatch.rules.detectors.loss_spike import LossSpike, LossSpikeDetector, LossWindow


def _watch(losses: list[float]) -> list[LossSpike]:
    detector, state, told = LossSpikeDetector(), LossWindow(), []
    for step, loss in enumerate(losses):
        state, spike = detector.weigh(state, step, loss)
        if spike is not None:
            told.append(spike)
    return told


def test_a_spike_opens_and_clears_once() -> None:
    told = _watch([2.0] * 10 + [9.0] * 5 + [2.0] * 10)
    assert [(spike.open, spike.step) for spike in told] == [(True, 10), (False, 15)]
    assert told[0].usual == 2.0


@pytest.mark.capability("S000-17", "S003-32", "C-4")
@pytest.mark.parametrize(("loss", "spikes"), [(3.9, []), (4.0, []), (4.1, [(True, 10)])])
def test_a_spike_is_a_loss_of_more_than_twice_the_usual_one(
    loss: float, spikes: list[tuple[bool, int]]
) -> None:
    assert [(spike.open, spike.step) for spike in _watch([2.0] * 10 + [loss] * 2)] == spikes


def test_a_long_divergence_cannot_make_itself_usual() -> None:
    assert [spike.open for spike in _watch([2.0] * 10 + [9.0] * 500)] == [True]


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("before", [0, 3, 20])
def test_a_loss_that_is_no_number_is_told_once(bad: float, before: int) -> None:
    assert [spike.open for spike in _watch([2.0] * before + [bad] * 3)] == [True]


@given(st.lists(st.floats(min_value=1.0, max_value=1.9), max_size=200))
def test_an_ordinary_loss_is_no_spike(losses: list[float]) -> None:
    assert _watch(losses) == []


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=100))
def test_openings_and_clearings_take_turns(losses: list[float]) -> None:
    told = [spike.open for spike in _watch(losses)]
    assert told == [index % 2 == 0 for index in range(len(told))]


@pytest.mark.parametrize(
    ("before", "told"), [([], "no step before it printed a number"), ([2.0], "lately it was 2")]
)
def test_a_loss_that_is_no_number_is_compared_only_with_losses_that_were_printed(
    before: list[float], told: str
) -> None:
    detector, state = LossSpikeDetector(), LossWindow(tuple(before))
    _, signs = detector.observe(state, StepSeen(0, "n0", "/log", 7, 40, "training", "nan"))
    (opened,) = signs
    assert isinstance(opened, Opened)
    assert opened.detail == f"the loss is nan at step 40 (/log:7); {told}"
    assert ("usual" in opened.quantities) == bool(before)


@pytest.mark.parametrize(("high", "spikes"), [(0.0009, 0), (0.0011, 1)])
def test_a_loss_without_a_step_is_no_spike_while_it_is_next_to_nothing(high: float, spikes: int) -> None:
    detector, state, told = LossSpikeDetector(), LossWindow(), []
    for at, loss in enumerate([1e-6, 2e-6] * 8 + [high] * 3):
        line = StepSeen(
            at, "n0", "/log", at, -1, "training", str(loss), rule="toy", own=False, at=(at + 1.0,)
        )
        state, signs = detector.observe(state, line)
        told += [sign for sign in signs if isinstance(sign, Opened)]
    assert len(told) == spikes
