"""Where to read on after an assignment, from what Redis, the group and the log say. Values only."""

from __future__ import annotations

from dataclasses import dataclass

from midwatch.streams.errors import MidwatchError
from midwatch.streams.worker.tables.script import NOTHING


@dataclass(frozen=True, slots=True)
class Bounds:
    """What Kafka says of one partition: the group's commit, the log's first offset, and its end (the
    offset that the next record will get).
    """

    committed: int | None
    log_start: int
    log_end: int


@dataclass(frozen=True, slots=True)
class Position:
    """`retention_gap` counts offsets that were deleted before they were read. Sends of inputs below
    `mute_below` had been published before and must not be published again.
    """

    next_offset: int
    retention_gap: int = 0
    mute_below: int = 0


class AheadOfLog(MidwatchError):
    """The state is newer than the topic: reading on would skip every new record as done."""


def table_position(stored: int, bounds: Bounds, where: str) -> Position:
    """Redis is the truth: read on behind the offset stored there, or from the log's start without one.

    The group's commit is made only when all that came of the inputs below it is published. So if Redis
    has less than the group committed (Redis was lost, or rolled back), state is computed again and its
    sends stay muted up to there. Raises AheadOfLog if the log is shorter than what was read from it.
    """
    furthest = max(stored + 1, bounds.committed or 0)
    if furthest > bounds.log_end:
        raise AheadOfLog(
            f"the records up to offset {furthest - 1} were processed, but the log ends at {bounds.log_end}",
            where=where,
            remedy="The topic was made anew or cut. Restore it; or, to begin anew, stop the workers and "
            "delete the keys of this partition in Redis and the group's offsets in Kafka.",
        )
    upcoming = max(stored + 1, bounds.log_start)
    gap = 0 if stored == NOTHING else upcoming - stored - 1
    return Position(upcoming, gap, bounds.committed or 0)


def reader_position(bounds: Bounds) -> Position:
    """A reader without state begins at the group's commit. If the log does not reach that far it was cut
    or made anew, and is read again from its start: for it, reading twice is harmless.
    """
    committed = bounds.committed
    if committed is None or committed > bounds.log_end:
        return Position(bounds.log_start)
    upcoming = max(committed, bounds.log_start)
    return Position(upcoming, upcoming - committed)
