"""Positions after an assignment, from the offsets of Redis, the group and the log. Values only."""

from __future__ import annotations

from dataclasses import dataclass

from midwatch.streams.errors import MidwatchError
from midwatch.streams.worker.tables.script import NOTHING


@dataclass(frozen=True, slots=True)
class Bounds:
    """Kafka's offsets of one partition: the group's commit, the log's first offset, and the log's end.

    The end is the offset that the next record will get.
    """

    committed: int | None
    log_start: int
    log_end: int


@dataclass(frozen=True, slots=True)
class Position:
    """The offset to read next. `retention_gap` counts offsets that were deleted before they were read.

    Sends of inputs below `mute_below` are already published and must not be published again.
    """

    next_offset: int
    retention_gap: int = 0
    mute_below: int = 0


class AheadOfLog(MidwatchError):
    """The state is newer than the topic: the worker would skip every new record as already folded."""


def table_position(stored: int, bounds: Bounds, where: str) -> Position:
    """Redis is the truth: continue after the offset stored there, or at the log's start without one.

    The group commits an offset only when all sends of the inputs below it are published. Redis may hold less
    than the group committed, because it was lost or rolled back. Then the worker computes the state again
    and mutes its sends up to the commit. Raises AheadOfLog if the log ends before an offset that was read.
    """
    furthest = max(stored + 1, bounds.committed or 0)
    if furthest > bounds.log_end:
        raise AheadOfLog(
            f"the records up to offset {furthest - 1} are folded, but the log ends at {bounds.log_end}",
            where=where,
            remedy="The topic was cut, or created anew. Restore it. Or, to begin anew, stop the workers and "
            "delete the keys of this partition in Redis and the group's offsets in Kafka.",
        )
    upcoming = max(stored + 1, bounds.log_start)
    gap = 0 if stored == NOTHING else upcoming - stored - 1
    return Position(upcoming, gap, bounds.committed or 0)


def reader_position(bounds: Bounds) -> Position:
    """The position of a reader without state: the group's commit.

    If the log ends before the commit, it was cut or made anew. The reader then reads it again from its
    start, because reading a record twice does no harm.
    """
    committed = bounds.committed
    if committed is None or committed > bounds.log_end:
        return Position(bounds.log_start)
    upcoming = max(committed, bounds.log_start)
    return Position(upcoming, upcoming - committed)
