"""Hits of several files in the order of their times: cuts and joins records. Pure."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain

from midwatch.streams.records import Hit, Hits, Origin, Progress


def timed(record: Hits, latest: float, undated: float) -> tuple[Hits, float]:
    """The record with no time below `latest`, and its latest time. An unknown time becomes `undated`.

    A line has no earlier time than the lines above it in its file, which the records before held.
    """

    def known(time: float) -> float:
        return undated if math.isnan(time) else max(time, latest)

    progress = tuple(_with_times(column, list(map(known, column.times))) for column in record.progress)
    hits = tuple(_at(hit, known(hit.line.time)) for hit in record.hits)
    stops = tuple(replace(stop, time=known(stop.time)) for stop in record.stops)
    times = chain(
        (max(column.times) for column in progress if column.times),
        (hit.line.time for hit in hits),
        (stop.time for stop in stops),
    )
    # Nothing is judged twice here, so no mark of what was judged is needed.
    return replace(record, progress=progress, hits=hits, stops=stops, ends={}), max(times, default=latest)


def no_earlier(record: Hits, first: int, clock: float) -> Hits:
    """The record whose lines from the number `first` on have no time below the clock."""
    progress = tuple(
        _with_times(
            column,
            [
                max(time, clock) if number >= first else time
                for number, time in zip(column.numbers, column.times, strict=True)
            ],
        )
        for column in record.progress
    )
    hits = tuple(
        _at(hit, max(hit.line.time, clock)) if hit.line.number >= first else hit for hit in record.hits
    )
    stops = tuple(
        replace(stop, time=max(stop.time, clock)) if stop.number >= first else stop for stop in record.stops
    )
    return replace(record, progress=progress, hits=hits, stops=stops)


def _with_times(column: Progress, times: Sequence[float]) -> Progress:
    return column if column.times == (after := tuple(times)) else replace(column, times=after)


def _at(hit: Hit, time: float) -> Hit:
    return hit if hit.line.time == time else replace(hit, line=replace(hit.line, time=time))


def cut(record: Hits, until: float, *, inclusive: bool) -> tuple[Hits | None, Hits | None]:
    """The record up to a time, and its rest, in the order of the file. `inclusive`: with that time."""
    beyond = _first_number_beyond(record, until, inclusive=inclusive)
    if beyond is None:
        return record, None
    ends = [bisect_left(column.numbers, beyond) for column in record.progress]
    before = replace(
        record,
        progress=tuple(
            _part(column, 0, end) for column, end in zip(record.progress, ends, strict=True) if end
        ),
        hits=tuple(hit for hit in record.hits if hit.line.number < beyond),
        stops=tuple(stop for stop in record.stops if stop.number < beyond),
        counts=(),
    )
    if not (before.progress or before.hits or before.stops):
        return None, record
    rest = replace(
        record,
        progress=tuple(
            _part(column, end, len(column.numbers))
            for column, end in zip(record.progress, ends, strict=True)
            if end < len(column.numbers)
        ),
        hits=tuple(hit for hit in record.hits if hit.line.number >= beyond),
        stops=tuple(stop for stop in record.stops if stop.number >= beyond),
    )
    return before, rest


def _first_number_beyond(record: Hits, until: float, *, inclusive: bool) -> int | None:
    """The number of the first line that is later than `until`; None if there is none."""
    found = [
        number
        for column in record.progress
        for number, time in zip(column.numbers, column.times, strict=True)
        if time > until or (time == until and not inclusive)
    ]
    lines = ((hit.line.number, hit.line.time) for hit in record.hits)
    stops = ((stop.number, stop.time) for stop in record.stops)
    found += [
        number for number, time in chain(lines, stops) if time > until or (time == until and not inclusive)
    ]
    return min(found, default=None)


def _part(column: Progress, start: int, end: int) -> Progress:
    return replace(
        column,
        steps=column.steps[start:end],
        ends=column.ends[start:end],
        numbers=column.numbers[start:end],
        times=column.times[start:end],
        losses=column.losses[start:end],
        counts=column.counts[start:end],
        grad_norms=column.grad_norms[start:end],
        last=column.last if end == len(column.numbers) else None,
    )


def joined(origin: Origin, bundle: str, records: Iterable[Hits]) -> Hits:
    """All records as one, because detect orders lines by time only within one record."""
    parts = list(records)
    if len(parts) == 1:
        return parts[0]
    return Hits(
        origin=origin,
        bundle=bundle,
        hits=tuple(hit for record in parts for hit in record.hits),
        counts=tuple(count for record in parts for count in record.counts),
        progress=tuple(column for record in parts for column in record.progress),
        stops=tuple(stop for record in parts for stop in record.stops),
    )
