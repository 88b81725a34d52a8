"""Ids of outgoing records: `<topic>/<partition>/<input offset + 1>-<n>`, the same each time.

The last part is the id of the outbox entry (a Redis stream id, which must be above 0-0: hence the + 1).
First occurrences come in order, so the reader needs one high-water mark per source partition and no
memory of ids.
"""

from __future__ import annotations

from midwatch.streams.errors import MalformedRecord

HEADER = "id"
"""The Kafka header that carries the id."""

EntryId = tuple[int, int]
"""(input offset + 1, number of the record among those of that input), comparable."""


def entry_id(offset: int, number: int) -> EntryId:
    """The id of the `number`-th record (from 0) that the input at `offset` sent."""
    return offset + 1, number


def input_offset(entry: EntryId) -> int:
    """The offset of the input that sent the record."""
    return entry[0] - 1


def format_entry(entry: EntryId) -> bytes:
    return b"%d-%d" % entry


def parse_entry(text: bytes) -> EntryId:
    """Raises MalformedRecord if this is no id of ours."""
    major, dash, minor = text.partition(b"-")
    if not (dash and major.isdigit() and minor.isdigit()):
        raise MalformedRecord(f"not an id of an outgoing record: {text[:80]!r}")
    return int(major), int(minor)


def format_id(topic: str, partition: int, entry: EntryId) -> bytes:
    return b"%s/%d/%s" % (topic.encode(), partition, format_entry(entry))


def parse_id(text: bytes) -> tuple[bytes, EntryId]:
    """(source `topic/partition`, entry). Raises MalformedRecord if this is no id of ours."""
    source, slash, entry = text.rpartition(b"/")
    if not slash or not source:
        raise MalformedRecord(f"not an id of an outgoing record: {text[:80]!r}")
    return source, parse_entry(entry)
