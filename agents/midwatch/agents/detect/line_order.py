"""Which of two lines of a job's logs came first. Pure.

Lines of one file stand in the order of their numbers. Lines of two files have only their times, and many have
the same one: some print whole seconds, and those that print none have the time of their reading. Then nobody
knows. What takes a line for granted as the earlier one asks `earlier`; what looks for an explanation and
would lose it over an equal second asks `maybe_earlier`.
"""

from __future__ import annotations

from typing import Protocol

from midwatch.streams.records import Hit


class Placed(Protocol):
    """A line with its place. `file` says where its number counts."""

    @property
    def file(self) -> tuple[str, str]: ...
    @property
    def number(self) -> int: ...
    @property
    def time(self) -> float: ...


def earlier(one: Placed, other: Placed) -> bool:
    """Whether the one line is known to stand before the other."""
    if one.file == other.file:
        return one.number < other.number
    return one.time < other.time


def maybe_earlier(one: Placed, other: Placed) -> bool:
    """Whether the one line may stand before the other: it is another line, and not known to stand behind."""
    if one.file == other.file:
        return one.number < other.number
    return one.time <= other.time


def in_order(hit: Hit) -> tuple[float, str, str, int]:
    """To sort by, the same in every run. Never to compare by: at one time it goes by the names of files."""
    return (hit.line.time, hit.line.node, hit.line.path, hit.line.number)
