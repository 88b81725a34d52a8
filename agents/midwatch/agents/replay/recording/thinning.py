"""The records that a recording keeps of a partition that many jobs share. Pure.

A recording needs only the passing of time from other jobs' records. So one tick replaces all such records
between two records of the job. The tick has their highest append time. So the job's timers fire in the
recording where they fired in the stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from midwatch.streams.errors import MalformedRecord, NewerRecord
from midwatch.streams.records import Activation, Tick, codec
from midwatch.streams.worker.fold import Message

_TICK = codec.encode(Tick(due_ms=0))


def thinned(messages: Iterable[Message], key: bytes) -> Iterator[Message]:
    """The job's records and the activations of one partition, in order, with ticks for other jobs' records.

    A tick has the place of the last record that it replaces.
    """
    others: Message | None = None
    for message in messages:
        if message.key == key or activation_in(message) is not None:
            if others is not None:
                yield others
            others = None
            yield message
            continue
        latest = max(message.timestamp_ms, others.timestamp_ms if others is not None else 0)
        others = replace(message, key=None, value=_TICK, headers=(), timestamp_ms=latest, now_ms=latest)
    if others is not None:
        yield others


def activation_in(message: Message) -> Activation | None:
    """The activation in a record without a key; None for any other record."""
    if message.key is not None or message.value is None:
        return None
    try:
        record = codec.decode(message.value)
    except (MalformedRecord, NewerRecord):
        return None
    return record if isinstance(record, Activation) else None
