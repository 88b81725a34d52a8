"""Last writes: what the times at which files were last written tell of the lines in them. Pure.

A copy of a file may have the time of the copying. Copies follow each other at once, in the order of their
names. A file's own last write stands right behind the last time that it prints, but for whole quarters of an
hour: the lines may print the time of another zone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from midwatch.agents.detect.line_order import AT_ANY_TIME

_QUARTER = 900.0
_AHEAD = 5.0  # seconds by which the clock of the lines may be ahead of the file server's
_BEHIND = 60.0  # seconds in which the lines without a time behind the last printed one were written
_TOGETHER = 2.0
"""Seconds in which files are written or copied together. Which of them came first then tells nothing."""


def in_printed_zone(modified: Sequence[float], last: Sequence[float | None]) -> list[float]:
    """The last write of each file, as a time of the zone that the files print.

    `last`: the last time that each prints. It is `AT_ANY_TIME` if the last writes are none of the job's own.
    If no file prints a time, last writes a moment apart are one time: the latest of them.
    """
    printed = [(at, time) for at, time in zip(modified, last, strict=True) if time is not None]
    if not printed:
        return _together(modified)
    zone = _zone(printed)
    if zone is None:
        return [AT_ANY_TIME] * len(modified)
    written, end = max(at for at, _ in printed), max(time for _, time in printed)
    return [max(at - zone, end) if abs(at - written) <= _TOGETHER else at - zone for at in modified]


def _zone(printed: Sequence[tuple[float, float]]) -> float | None:
    """By how much last writes are ahead of the printed times; None if they are not the files' own."""
    zones = Counter[float]()
    for at, time in printed:
        quarters = (at - time + _AHEAD) // _QUARTER * _QUARTER
        zones[quarters] += at - time - quarters <= _BEHIND
    zone, files = zones.most_common(1)[0]
    return zone if 2 * files >= len(printed) else None


def _together(modified: Sequence[float]) -> list[float]:
    later: dict[float, float] = {}
    following = AT_ANY_TIME
    for at in sorted(set(modified), reverse=True):
        later[at] = later[following] if following - at <= _TOGETHER else at
        following = at
    return [later[at] for at in modified]
