"""The numbers of a job's attempts, from the records of the topics. Pure.

Detect alone gives the numbers. Its incidents and snapshots name them with their incarnations. An attempt that
neither names has begun lately, so its number follows from the order in which its job's starts are seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from midwatch.streams.records import (
    Command,
    Decision,
    Finding,
    Heartbeat,
    Hits,
    Incident,
    Outcome,
    SchedulerFact,
    Snapshot,
    SpecEvent,
)

_UNKNOWN = "unknown"  # as detect calls an attempt of which only a foreign shipper has sent lines


def attempt_numbers(records: Sequence[object]) -> dict[str, int]:
    """The numbers by incarnation. The records must be in the sequence of time, and of one job."""
    given = dict(_given(records))
    numbers: dict[str, int] = {}
    without_name, newest = 0, ""
    for record in records:
        attempt = record.attempt if isinstance(record, Finding | Decision | Command | Outcome) else 0
        if attempt > max(numbers.values(), default=0):
            without_name = attempt
            if newest and newest not in given:
                numbers[newest] = attempt
        for name in _incarnations(record):
            if name in numbers or (name == _UNKNOWN and numbers):
                continue
            following = max(max(numbers.values(), default=0) + 1, without_name)
            while following in given.values():
                following += 1
            if list(numbers) == [_UNKNOWN] and name not in given:
                following = numbers.pop(_UNKNOWN)
            numbers[name] = given.get(name, following)
            newest = name
    return {**given, **numbers}


def _given(records: Sequence[object]) -> Iterator[tuple[str, int]]:
    for record in records:
        match record:
            case Snapshot():
                yield from record.incarnations.items()
            case Incident() if record.incarnation:
                yield record.incarnation, record.attempt
                if record.superseded_by:
                    yield record.superseded_by, record.attempt + 1


def _incarnations(record: object) -> tuple[str, ...]:
    """The incarnations that the record names, the older one first."""
    match record:
        case Hits() | Heartbeat():
            names: tuple[str, ...] = (record.origin.incarnation or _UNKNOWN,)
        case SchedulerFact() | SpecEvent():
            names = (record.incarnation,)
        case Incident():
            names = (record.incarnation, record.superseded_by)
        case Outcome() if record.state == "done":
            names = (record.new_incarnation,)
        case Snapshot():
            names = tuple(sorted(record.incarnations, key=record.incarnations.__getitem__))
        case _:
            names = ()
    return tuple(name for name in names if name)
