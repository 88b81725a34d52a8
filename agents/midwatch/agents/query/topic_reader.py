"""Reads topics to their present end, for commands that change nothing: no group, no commit, bounded time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from operator import eq
from typing import Any

from midwatch.streams.errors import MalformedRecord, NewerRecord, ServiceUnreachable
from midwatch.streams.records import codec
from midwatch.streams.services.kafka_client import BOUNDED, plain_consumer
from midwatch.streams.services.reachable import check_kafka, kafka_log
from midwatch.streams.settings.schema import Settings

PATIENCE = 30.0  # seconds
_POLL_MS = 500

KeyFilter = Callable[[bytes | None], object]


@dataclass(frozen=True, slots=True)
class SeenRecord:
    """A record and its place. `at_ms`: the message's time, the broker's where the topic is set so."""

    topic: str
    partition: int
    offset: int
    at_ms: int
    key: bytes | None
    record: Any


@dataclass(slots=True)
class Reading:
    """The records in the sequence of time. `unreadable` counts those that this midwatch cannot read."""

    seen: list[SeenRecord]
    unreadable: int = 0


def read_topics(
    settings: Settings,
    topics: Iterable[str],
    *,
    key_filter: KeyFilter = lambda _key: True,
    since_ms: Mapping[str, int] | None = None,
    only_key: bytes | None = None,
    patience: float = PATIENCE,
) -> Reading:
    """All records of the topics up to their present ends whose key passes `key_filter`.

    With `since_ms` a topic begins at its first message of that time. Only records whose key passes are
    decoded. `only_key` takes the records of that key alone, from its partition. `patience` is in seconds.

    Raises:
        ServiceUnreachable: Kafka or a topic is not there, or the end was not reached within `patience`.
    """
    check_kafka(settings)
    from kafka.errors import KafkaError

    if only_key is not None:
        key_filter = partial(eq, only_key)
    reading = Reading([])
    where = ", ".join(settings.kafka.bootstrap)
    with kafka_log():
        try:
            for topic, message in _messages(settings, tuple(topics), since_ms or {}, only_key, patience):
                if not key_filter(message.key):
                    continue
                try:
                    record = codec.decode(message.value) if message.value is not None else None
                except (MalformedRecord, NewerRecord):
                    reading.unreadable += 1
                    continue
                reading.seen.append(
                    SeenRecord(
                        topic, message.partition, message.offset, message.timestamp, message.key, record
                    )
                )
        except KafkaError as error:
            raise ServiceUnreachable(
                f"Kafka stopped answering: {error}", where=where, remedy="midwatch doctor"
            ) from error
    reading.seen.sort(key=lambda seen: (seen.at_ms, seen.topic, seen.partition, seen.offset))
    return reading


def messages_of(settings: Settings, topic: str, key: bytes, patience: float = PATIENCE) -> Iterator[Any]:
    """All messages, undecoded, of the topic's partition that holds the key, by offset.

    Raises as `read_topics`.
    """
    check_kafka(settings)
    from kafka.errors import KafkaError

    with kafka_log():
        try:
            for _, message in _messages(settings, (topic,), {}, key, patience):
                yield message
        except KafkaError as error:
            raise ServiceUnreachable(
                f"Kafka stopped answering: {error}",
                where=", ".join(settings.kafka.bootstrap),
                remedy="midwatch doctor",
            ) from error


def _messages(
    settings: Settings,
    topics: tuple[str, ...],
    since_ms: Mapping[str, int],
    only_key: bytes | None,
    patience: float,
) -> Iterator[tuple[str, Any]]:
    deadline = time.monotonic() + patience
    consumer = plain_consumer(settings.kafka, **BOUNDED, fetch_max_wait_ms=50, max_poll_records=5000)
    try:
        ends = _assign(consumer, settings, topics, since_ms, only_key)
        while ends:
            if time.monotonic() > deadline:
                raise ServiceUnreachable(
                    f"the end of {', '.join(sorted({tp.topic for tp in ends}))} was not reached in time",
                    where=", ".join(settings.kafka.bootstrap),
                    remedy="ask again with a longer --patience, or for one job by its whole name",
                )
            for tp, messages in consumer.poll(timeout_ms=_POLL_MS).items():
                end = ends.get(tp)
                for message in messages:
                    if end is not None and message.offset < end:
                        yield tp.topic, message
            # The position, not the last message, shows the end: markers and compaction leave holes.
            done = [tp for tp, end in ends.items() if consumer.position(tp) >= end]
            for tp in done:
                del ends[tp]
                consumer.pause(tp)
    finally:
        consumer.close()


def _assign(
    consumer: Any,
    settings: Settings,
    topics: tuple[str, ...],
    since_ms: Mapping[str, int],
    only_key: bytes | None,
) -> dict[Any, int]:
    """Assigns and seeks the partitions. Returns the ends of those that hold something to read."""
    from kafka import TopicPartition

    from midwatch.streams.services.partitioner import partition_of

    partitions = []
    for topic in topics:
        known = consumer.partitions_for_topic(topic)
        if not known:
            raise ServiceUnreachable(
                f"the topic {topic} does not exist",
                where=", ".join(settings.kafka.bootstrap),
                remedy="`midwatch up` makes the topics; topics.prefix must be the same everywhere",
            )
        if only_key is not None:
            known = {partition_of(only_key, len(known))}
        partitions += [TopicPartition(topic, number) for number in sorted(known)]
    consumer.assign(partitions)
    starts: dict[Any, int] = consumer.beginning_offsets(partitions)
    ends: dict[Any, int] = consumer.end_offsets(partitions)
    times = {tp: since_ms[tp.topic] for tp in partitions if tp.topic in since_ms}
    for tp, found in (consumer.offsets_for_times(times) if times else {}).items():
        starts[tp] = ends[tp] if found is None else found.offset
    for tp in partitions:
        consumer.seek(tp, starts[tp])
    unread = {tp: ends[tp] for tp in partitions if ends[tp] > starts[tp]}
    if idle := [tp for tp in partitions if tp not in unread]:
        consumer.pause(*idle)
    return unread
