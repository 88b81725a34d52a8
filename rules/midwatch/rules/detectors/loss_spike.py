"""The loss spike: a loss far above the recent losses, or one that is not a finite number.

The detector takes the median of the last `window` healthy losses. A loss above `factor` times the median
opens the finding. The finding clears once the loss is back under the midpoint between median and limit.
Losses of an open spike do not enter the window, so a long divergence never looks normal.

Lines that name their step count. Where none of them prints a loss, the lines of the first rule count that
reads one. It may be a policy's loss, which swings around 0, or one that is summed up. So such a spike must
jump, stand out from the usual change from loss to loss, and be more than next to nothing. Where the loop goes
far back, another one began; ranks that lag go back a little.

A loss of 0 beside gradients that are no number is none: transformers prints 0 in its place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import islice, pairwise

from midwatch.rules.detectors.base import Cleared, Opened, Sighting, Sign, StepSeen

_ANEW = 4
"""A loop began anew where its count is less than this part of the highest one before."""
_STANDS_OUT, _JUMPS = 12.0, 2.0
"""Times the usual change from loss to loss: above the usual loss, and above the one before."""
_NEAR_NOTHING = 1e-3
"""A policy's loss lies around 0 by its make, so it rises a hundredfold below this while all goes well."""


@dataclass(frozen=True, slots=True)
class LossWindow:
    """The detector's state: the last healthy losses, and whether a spike is open.

    `rule`: whose lines they are if these name no step, and `at`: how far their loop is. `named`: whether a
    line with a step printed a loss.
    """

    losses: tuple[float, ...] = ()
    open: bool = False
    rule: str = ""
    named: bool = False
    at: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class LossSpike:
    """The finding opened (`open`) or cleared. `usual`: the window's median; None before any healthy loss."""

    open: bool
    step: int
    loss: float
    usual: float | None


@dataclass(frozen=True, slots=True)
class LossSpikeDetector:
    """Finds spikes. The default `factor` is the usual request: "loss above twice its moving average"."""

    window: int = 32
    warm_up: int = 8
    factor: float = 2.0
    name: str = "loss_spike"
    version: str = "3"

    def start(self) -> LossWindow:
        """Nothing was printed yet."""
        return LossWindow()

    def observe(self, state: LossWindow, seen: Sighting) -> tuple[LossWindow, tuple[Sign, ...]]:
        """Only lines of one series that print a loss count."""
        if not isinstance(seen, StepSeen):
            return state, ()
        try:
            loss = _loss_of(seen)
        except ValueError:
            return state, ()
        if not seen.own and (state.named or state.rule not in ("", seen.rule)):
            return state, ()
        if not state.named or not seen.own:
            state = _series_of(state, seen)
        state, spike = self.weigh(state, seen.step, loss)
        if spike is None:
            return state, ()
        at = f"at step {seen.step} " if seen.step >= 0 else ""
        place = f"{at}({seen.path}:{seen.number})"
        if not spike.open:
            return state, (Cleared(f"the loss is back at {seen.loss} {place}"),)
        numbers = {"step": str(seen.step), "loss": seen.loss} if at else {"loss": seen.loss}
        shown = f"the loss is {seen.loss} {place}"
        if math.isfinite(float(seen.loss)) and not math.isfinite(loss):
            shown = f"the gradients are no number while the loss is {seen.loss} {place}"
        told = f"{shown}; no step before it printed a number"
        if spike.usual is not None:
            numbers["usual"] = f"{spike.usual:.6g}"
            told = f"{shown}; lately it was {spike.usual:.4g}"
        return state, (Opened(told, numbers),)

    def weigh(self, state: LossWindow, step: int, loss: float) -> tuple[LossWindow, LossSpike | None]:
        """Fold the loss of one step. Call it in the order in which the job prints the losses."""
        if not math.isfinite(loss):
            return self._non_finite(state, step, loss)
        if len(state.losses) < self.warm_up:
            return replace(state, losses=(*state.losses, loss)), None
        usual = _median(state.losses)
        limit = usual * self.factor if usual > 0 else usual + abs(usual)
        if state.rule and (state.open or loss > limit):
            change = _median(_changes(state.losses))
            limit = max(limit, usual + _STANDS_OUT * change, _NEAR_NOTHING)
            if not state.open:
                limit = max(limit, state.losses[-1] + _JUMPS * change)
        if not state.open and loss > limit:
            return replace(state, open=True), LossSpike(True, step, loss, usual)
        if state.open and loss > (usual + limit) / 2:
            return state, None
        kept = (*state.losses, loss)[-self.window :]
        if state.open:
            return replace(state, losses=kept, open=False), LossSpike(False, step, loss, usual)
        return replace(state, losses=kept), None

    def _non_finite(self, state: LossWindow, step: int, loss: float) -> tuple[LossWindow, LossSpike | None]:
        if state.open:
            return state, None
        usual = _median(state.losses) if state.losses else None
        return replace(state, open=True), LossSpike(True, step, loss, usual)


def _loss_of(seen: StepSeen) -> float:
    """The loss. 0 beside gradients that are no number stands for no number. Raises ValueError for no loss."""
    loss = float(seen.loss)
    return math.nan if loss == 0 and seen.grad_norm.lower() == "nan" else loss


def _series_of(state: LossWindow, seen: StepSeen) -> LossWindow:
    """The window for the line's series. Losses of lines that name no step, or of another loop, go."""
    if seen.own:
        return replace(state, named=True, rule="", at=(), losses=() if state.rule else state.losses)
    if _began_anew(state.at, seen.at):
        return replace(state, rule=seen.rule, at=seen.at, losses=())
    return replace(state, rule=seen.rule, at=max(state.at, seen.at))


def _began_anew(before: tuple[float, ...], at: tuple[float, ...]) -> bool:
    """Whether the first number in which the two places differ went far back: the epoch, or its batch."""
    differ = ((now, then) for now, then in zip(at, before, strict=False) if now != then)
    return any(now < then / _ANEW for now, then in islice(differ, 1))


def _changes(losses: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(abs(after - before) for before, after in pairwise(losses)) or (0.0,)


def _median(losses: tuple[float, ...]) -> float:
    """The median of one loss or more, without the checks of `statistics`: each line of a log asks for one."""
    ordered, middle = sorted(losses), len(losses) // 2
    return ordered[middle] if len(losses) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
