"""The order of two lines of a job's logs. Pure.

Line numbers order the lines of one file, and times order the lines of two files. Times are often equal: some
lines print whole seconds, and a line without a printed time has the time of its read. Equal times have no
known order. Use `earlier` where the order must be certain. Use `maybe_earlier` in a search for an
explanation, where an equal time must not exclude line.
"""

from __future__ import annotations

from typing import Protocol

from midwatch.streams.records import Hit


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
    return line.time < other.time


def maybe_earlier(line: Placed, other: Placed) -> bool:
    """Whether the line may stand before the other: it is not the same line, and not certainly behind it."""
    if line.file == other.file:
        return line.number < other.number
    return line.time <= other.time


def in_order(hit: Hit) -> tuple[float, str, str, int]:
    """A sort key, the same in every run. Never compare by it: it orders equal times by the names of files."""
    return (hit.line.time, hit.line.node, hit.line.path, hit.line.number)
