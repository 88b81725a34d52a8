"""The open spike: a log whose last losses stand far above the others, or no longer appear. Pure.

A live watch reports a spike as a finding, because the run may recover. A saved log has no later lines, so a
spike that is open at its end is the verdict.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from midwatch.streams.records import Hits, Progress

_KEPT = 64
_FACTOR = 1.35
"""So far above the usual loss is the lowest one of a spike."""
_STEADY, _SINGLE = 4.0, 12.0
"""A spike of several losses, or of a single one, is so many times the usual change between two losses."""
_TINY = 1e-3
_LEAST = 2


class LossLine(NamedTuple):
    """One progress line of a log. `loss` is None if the line has none, though the rule could read one."""

    path: str
    number: int
    step: int
    loss: float | None


@dataclass(slots=True)
class Losses:
    """The last losses of each rule and file."""

    series: dict[tuple[str, str], deque[LossLine]] = field(default_factory=dict)

    def take(self, record: Hits) -> None:
        """Note the losses of one record. Records of a file come in its order."""
        for column in record.progress:
            if column.losses:
                known = self.series.setdefault((column.path, column.rule), deque(maxlen=_KEPT))
                known.extend(_lines(column))

    def open_spike(self) -> tuple[str, LossLine] | None:
        """The error type, and the first line of the spike, if one series ends in a spike."""
        found = (_at_end(tuple(lines)) for lines in self.series.values())
        return min((each for each in found if each), key=lambda each: each[1].step, default=None)


def _lines(column: Progress) -> Iterator[LossLine]:
    for number, step, loss in zip(column.numbers, column.steps, column.losses, strict=False):
        try:
            known = float(loss) if loss else None
        except ValueError:
            known = None
        yield LossLine(column.path, number, step, known)


def _at_end(lines: tuple[LossLine, ...]) -> tuple[str, LossLine] | None:
    """The spike at the end of one series."""
    known = [line for line in lines if line.loss is not None and math.isfinite(line.loss)]
    vanished = _vanished(lines)
    if vanished is not None and _is_high(known):
        return "numerical_instability", vanished
    spike = _raised(known)
    return ("loss_spike", spike) if spike else None


def _vanished(lines: tuple[LossLine, ...]) -> LossLine | None:
    """The first line without a loss, if no later line has one."""
    first = None
    for line in reversed(lines):
        if line.loss is not None:
            break
        first = line
    return first


def _is_high(known: list[LossLine]) -> bool:
    """Whether the last loss of all is far above the usual one."""
    losses = [line.loss for line in known if line.loss is not None]
    return len(losses) > _LEAST and losses[-1] > _FACTOR * median(losses[:-1]) > 0


def _raised(known: list[LossLine]) -> LossLine | None:
    """The first of the last losses that all stand far above the losses before them."""
    losses = [line.loss for line in known if line.loss is not None]
    best = None
    for size in range(1, len(losses) - _LEAST + 1):
        before, tail = losses[-size - 32 : -size], losses[-size:]
        usual = median(before)
        if usual > 0 and min(tail) > _FACTOR * usual and _stands_out(before, tail, usual):
            best = known[-size]
    return best


def _stands_out(before: list[float], tail: list[float], usual: float) -> bool:
    change = max(median(_changes(before)), _TINY * usual)
    return min(tail) - usual >= (_STEADY if len(tail) > 1 else _SINGLE) * change


def _changes(losses: Iterable[float]) -> list[float]:
    return [abs(after - earlier) for earlier, after in pairwise(losses)]
