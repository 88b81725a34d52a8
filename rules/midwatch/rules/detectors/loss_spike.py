"""The loss spike: a loss far above the recent losses, or one that is not a finite number.

The detector takes the median of the last `window` healthy losses. A loss above `factor` times the median
opens the finding. The finding clears once the loss is back under the midpoint between median and limit.
Losses of an open spike do not enter the window, so a long divergence never looks normal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from midwatch.rules.detectors.base import Cleared, Opened, Sighting, Sign, StepSeen


@dataclass(frozen=True, slots=True)
class LossWindow:
    """The detector's state: the last healthy losses, and whether a spike is open."""

    losses: tuple[float, ...] = ()
    open: bool = False


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
    version: str = "1"

    def start(self) -> LossWindow:
        """Nothing was printed yet."""
        return LossWindow()

    def observe(self, state: LossWindow, seen: Sighting) -> tuple[LossWindow, tuple[Sign, ...]]:
        """Only steps that print a loss count."""
        if not isinstance(seen, StepSeen):
            return state, ()
        try:
            loss = float(seen.loss)
        except ValueError:
            return state, ()
        state, spike = self.weigh(state, seen.step, loss)
        if spike is None:
            return state, ()
        place = f"{seen.path}:{seen.number}"
        if not spike.open:
            return state, (Cleared(f"the loss is back at {seen.loss} at step {seen.step} ({place})"),)
        numbers = {"step": str(seen.step), "loss": seen.loss}
        told = f"the loss is {seen.loss} at step {seen.step} ({place}); no step before it printed a number"
        if spike.usual is not None:
            numbers["usual"] = f"{spike.usual:.6g}"
            told = f"the loss is {seen.loss} at step {seen.step} ({place}); lately it was {spike.usual:.4g}"
        return state, (Opened(told, numbers),)

    def weigh(self, state: LossWindow, step: int, loss: float) -> tuple[LossWindow, LossSpike | None]:
        """Fold the loss of one step. Call it in the order in which the job prints the losses."""
        if not math.isfinite(loss):
            return self._non_finite(state, step, loss)
        if len(state.losses) < self.warm_up:
            return replace(state, losses=(*state.losses, loss)), None
        usual = _median(state.losses)
        limit = usual * self.factor if usual > 0 else usual + abs(usual)
        if not state.open and loss > limit:
            return replace(state, open=True), LossSpike(True, step, loss, usual)
        if state.open and loss > (usual + limit) / 2:
            return state, None
        kept = (*state.losses, loss)[-self.window :]
        if state.open:
            return LossWindow(kept), LossSpike(False, step, loss, usual)
        return LossWindow(kept), None

    def _non_finite(self, state: LossWindow, step: int, loss: float) -> tuple[LossWindow, LossSpike | None]:
        if state.open:
            return state, None
        usual = _median(state.losses) if state.losses else None
        return replace(state, open=True), LossSpike(True, step, loss, usual)


def _median(losses: tuple[float, ...]) -> float:
    """The median of one loss or more, without the checks of `statistics`: each line of a log asks for one."""
    ordered, middle = sorted(losses), len(losses) // 2
    return ordered[middle] if len(losses) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
