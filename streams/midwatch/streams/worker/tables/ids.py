"""Ids of outgoing records: `<topic>/<partition>/<input offset + 1>-<n>`. A repeated send has the same id.

The last part is the id of the outbox entry. It is a Redis stream id, which must be above 0-0: hence the + 1.
Ids first appear in order. So the reader needs one high-water mark per source partition and no list of ids.
"""

from __future__ import annotations

from midwatch.streams.errors import MalformedRecord

HEADER = "id"
"""The Kafka header that carries the id."""

EntryId = tuple[int, int]
"""(input offset + 1, number of the record among the sends of that input); ids compare in order."""


def entry_id(offset: int, number: int) -> EntryId:
    """The id of the `number`-th record (from 0) that the input at `offset` sent."""
    return offset + 1, number


def input_offset(entry: EntryId) -> int:
    """The offset of the input that sent the record."""
    return entry[0] - 1


def format_entry(entry: EntryId) -> bytes:
    return b"%d-%d" % entry


def parse_entry(text: bytes) -> EntryId:
    """Raises MalformedRecord if the text is not such an id."""
    major, dash, minor = text.partition(b"-")
    if not (dash and major.isdigit() and minor.isdigit()):
        raise MalformedRecord(f"not the id of an outgoing record: {text[:80]!r}")
    return int(major), int(minor)


def format_id(topic: str, partition: int, entry: EntryId) -> bytes:
    return b"%s/%d/%s" % (topic.encode(), partition, format_entry(entry))


def parse_id(text: bytes) -> tuple[bytes, EntryId]:
    """(source `topic/partition`, entry). Raises MalformedRecord if the text is not such an id."""
    source, slash, entry = text.rpartition(b"/")
    if not slash or not source:
        raise MalformedRecord(f"not the id of an outgoing record: {text[:80]!r}")
    return source, parse_entry(entry)
