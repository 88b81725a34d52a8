"""The record size limit: no record for `events` is larger, whatever a job prints. Pure.

A chunk's lines can make more hits than a record may hold: many rules on long lines, or a progress line for
every few bytes. Then repetition goes, in this order:

1. Every further hit of a rule on a rank becomes a count.
2. Progress keeps its last lines only.
3. The last hits become counts.

The first hit of each rule stays longest, because the cause stands early.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from midwatch.streams.records import Hit, HitCount, Hits, Progress, codec

EVENT_LIMIT = 256 * 1024
"""Bytes that one record of `events` may have."""

_STEPS_KEPT = 512


def encoded(record: Hits, limit: int = EVENT_LIMIT) -> bytes:
    """The JSON of the record, or of as much of it as `limit` bytes hold. Deterministic.

    It encodes a record within the limit only once.
    """
    if len(value := codec.encode(record)) <= limit:
        return value
    record = _counted(record, _repeated(record.hits))
    if len(value := codec.encode(record)) > limit:
        record = replace(record, progress=tuple(_last(column, _STEPS_KEPT) for column in record.progress))
        value = codec.encode(record)
    while len(value) > limit and (smaller := _smaller(record)) is not None:
        record = smaller
        value = codec.encode(record)
    return value


def _smaller(record: Hits) -> Hits | None:
    """The record without half of its progress, hits or counts; None if it holds none of them."""
    if record.progress:
        shorter = tuple(_last(column, max(len(column.steps) // 2, 1)) for column in record.progress)
        if shorter == record.progress:
            shorter = shorter[: len(shorter) // 2]
        return replace(record, progress=shorter)
    if record.hits:
        return _counted(record, set(range(len(record.hits) // 2, len(record.hits))))
    if record.counts:
        return replace(record, counts=record.counts[: len(record.counts) // 2])
    return None


def _repeated(hits: Iterable[Hit]) -> set[int]:
    seen: set[tuple[str, str, int | None]] = set()
    repeated: set[int] = set()
    for index, hit in enumerate(hits):
        name = (hit.rule, hit.role, hit.line.rank)
        if name in seen:
            repeated.add(index)
        seen.add(name)
    return repeated


def _counted(record: Hits, indices: set[int]) -> Hits:
    """The record with the hits at these indices as counts."""
    kept = tuple(hit for index, hit in enumerate(record.hits) if index not in indices)
    dropped = (hit for index, hit in enumerate(record.hits) if index in indices)
    return replace(record, hits=kept, counts=tuple(_added(record.counts, dropped)))


def _added(counts: Iterable[HitCount], hits: Iterable[Hit]) -> Iterator[HitCount]:
    sums = {(more.rule, more.rank, more.path): more for more in counts}
    for hit in hits:
        line = hit.line
        name = (hit.rule, line.rank, line.path)
        known = sums.get(name)
        if known is None:
            sums[name] = HitCount(hit.rule, line.rank, 1, line.number, line.number, line.path)
        else:
            sums[name] = replace(
                known,
                count=known.count + 1,
                first_number=min(known.first_number, line.number),
                last_number=max(known.last_number, line.number),
            )
    yield from sums.values()


def _last(column: Progress, kept: int) -> Progress:
    return replace(
        column,
        steps=column.steps[-kept:],
        ends=column.ends[-kept:],
        numbers=column.numbers[-kept:],
        times=column.times[-kept:],
        losses=column.losses[-kept:],
        counts=column.counts[-kept:],
        grad_norms=column.grad_norms[-kept:],
    )
