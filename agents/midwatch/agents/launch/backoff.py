"""How long to wait before a process that died is started again. Pure."""

from __future__ import annotations

from collections.abc import Sequence

PAUSES = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
"""Seconds; the first is short because a worker that died leaves its jobs unwatched."""

WINDOW = 60.0
"""Deaths further back than this many seconds are forgiven."""

LOOP = 4
"""That many deaths within the window are a crash loop, and somebody should be told."""


def recent(deaths: Sequence[float], now: float) -> tuple[float, ...]:
    """Deaths that still count at `now`."""
    return tuple(at for at in deaths if now - at < WINDOW)


def pause(deaths: Sequence[float], now: float) -> float:
    """Seconds from the last death to the next start; the process is always started again."""
    count = len(recent(deaths, now))
    return PAUSES[min(max(count, 1), len(PAUSES)) - 1]


def loops(deaths: Sequence[float], now: float) -> bool:
    """Whether it dies over and over."""
    return len(recent(deaths, now)) >= LOOP
