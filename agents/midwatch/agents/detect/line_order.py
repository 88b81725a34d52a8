"""The order of two lines of a job's logs. Pure.

Line numbers order the lines of one file, and times order the lines of two files. Times are often equal: some
lines print whole seconds, and a line without a printed time has the time of its read. Equal times have no
known order. Use `earlier` where the order must be certain. Use `maybe_earlier` in a search for an
explanation, where an equal time must not exclude line.

The time `AT_ANY_TIME` is that of a file whose lines have no order to those of other files.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Protocol

from midwatch.streams.records import Hit

AT_ANY_TIME = math.inf


class Placed(Protocol):
    """A line with its place. `file`: the file (node and path) in which its number counts."""

    @property
    def file(self) -> tuple[str, str]: ...
    @property
    def number(self) -> int: ...
    @property
    def time(self) -> float: ...


def earlier(line: Placed, other: Placed) -> bool:
    """Whether the line certainly stands before the other."""
    if line.file == other.file:
        return line.number < other.number
    return line.time < other.time < AT_ANY_TIME


def maybe_earlier(line: Placed, other: Placed) -> bool:
    """Whether the line may stand before the other: it is not the same line, and not certainly behind it."""
    if line.file == other.file:
        return line.number < other.number
    return line.time <= other.time or line.time == AT_ANY_TIME


def in_order(hit: Hit) -> tuple[float, str, str, int]:
    """A sort key, the same in every run. Never compare by it: it orders equal times by the names of files."""
    return (hit.line.time, hit.line.node, hit.line.path, hit.line.number)


class FirstAndLast:
    """The first and the last of some lines. It finds one that stands before or behind a line, at once."""

    def __init__(self, hits: Iterable[Hit]) -> None:
        self._files = _by_file(hits)
        # For a line of the outermost file the next file counts.
        self._first = sorted((min(own, key=in_order) for own in self._files.values()), key=in_order)[:2]
        last = (max(own, key=in_order) for own in self._files.values())
        # No other file's line is certainly earlier than one of any time.
        self._last = sorted((hit for hit in last if hit.line.time < AT_ANY_TIME), key=in_order)[-2:]

    def before(self, line: Placed) -> Hit | None:
        """One of the lines that is certainly `earlier` than this line; None if there is none."""
        own = self._files.get(line.file)
        if own is not None and earlier(own[0].line, line):
            return own[0]
        return next(
            (hit for hit in self._first if hit.line.file != line.file and earlier(hit.line, line)), None
        )

    def behind(self, line: Placed) -> Hit | None:
        """One of the lines than which this line is certainly `earlier`; None if there is none."""
        own = self._files.get(line.file)
        if own is not None and earlier(line, own[-1].line):
            return own[-1]
        return next(
            (hit for hit in self._last if hit.line.file != line.file and earlier(line, hit.line)), None
        )


def _by_file(hits: Iterable[Hit]) -> dict[tuple[str, str], list[Hit]]:
    """The hits of each file, by their line numbers."""
    files: dict[tuple[str, str], list[Hit]] = {}
    for hit in hits:
        files.setdefault(hit.line.file, []).append(hit)
    for own in files.values():
        own.sort(key=lambda hit: hit.line.number)
    return files
