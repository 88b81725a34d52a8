"""The loss spike: a loss far above what it was lately, or no number at all.

A plain window: the median of the last `window` healthy losses. A loss above `factor` times that median
opens the finding; it clears once the loss is back under the midpoint between the two. Losses inside an
open spike do not enter the window, so a long divergence cannot make itself normal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import median

from midwatch.rules.detectors.base import Cleared, Opened, Sighting, Sign, StepSeen


@dataclass(frozen=True, slots=True)
class LossWindow:
    """What the detector remembers: the last healthy losses, and whether a spike stands open."""

    losses: tuple[float, ...] = ()
    open: bool = False


@dataclass(frozen=True, slots=True)
class LossSpike:
    """The finding opened (`open`) or cleared. `usual` is the window's median."""

    open: bool
    step: int
    loss: float
    usual: float


@dataclass(frozen=True, slots=True)
class LossSpikeDetector:
    """`factor` 2 is what users ask for ("loss above twice its moving average")."""

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
        numbers = {"step": str(seen.step), "loss": seen.loss, "usual": f"{spike.usual:.6g}"}
        told = f"the loss is {seen.loss} at step {seen.step} ({place}); lately it was {spike.usual:.4g}"
        return state, (Opened(told, numbers),)

    def weigh(self, state: LossWindow, step: int, loss: float) -> tuple[LossWindow, LossSpike | None]:
        """One loss of one step, in the order in which they were printed."""
        if not math.isfinite(loss):
            return self._non_finite(state, step, loss)
        if len(state.losses) < self.warm_up:
            return replace(state, losses=(*state.losses, loss)), None
        usual = median(state.losses)
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
        usual = median(state.losses) if state.losses else 0.0
        return replace(state, open=True), LossSpike(True, step, loss, usual)
