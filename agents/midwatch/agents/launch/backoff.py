"""How long to wait before a dead process starts again. Pure."""

from __future__ import annotations

from collections.abc import Sequence

PAUSES = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
"""Seconds. The first is short: a dead worker leaves its jobs unwatched."""

WINDOW = 60.0
"""Seconds. Earlier deaths no longer count."""

LOOP = 4
"""So many deaths within the window are a crash loop, which a person should hear of."""


def recent(deaths: Sequence[float], now: float) -> tuple[float, ...]:
    """Deaths that still count at `now`."""
    return tuple(at for at in deaths if now - at < WINDOW)


def pause(deaths: Sequence[float], now: float) -> float:
    """Seconds from the last death to the next start. There is always a next start."""
    count = len(recent(deaths, now))
    return PAUSES[min(max(count, 1), len(PAUSES)) - 1]


def loops(deaths: Sequence[float], now: float) -> bool:
    """Whether the process is in a crash loop."""
    return len(recent(deaths, now)) >= LOOP
