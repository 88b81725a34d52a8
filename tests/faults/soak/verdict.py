"""What Redis and Kafka hold in the end, against what the ledger says was sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import redis
from kafka import KafkaConsumer, TopicPartition

from midwatch.streams.worker.tables.ids import HEADER
from midwatch.streams.worker.tables.keys import prefix

PARTITIONS = 8

Tally = dict[bytes, tuple[int, int]]
"""Count and checksum by key."""


@dataclass(frozen=True)
class StageVerdict:
    """One stage's counts against those that are right. `disordered`: the number is right, the chain not."""

    lost: int
    doubled: int
    disordered: int

    @property
    def exact(self) -> bool:
        return not (self.lost or self.doubled or self.disordered)


def judge(found: Tally, right: Tally) -> StageVerdict:
    lost = doubled = disordered = 0
    for key in found.keys() | right.keys():
        (count, checksum), (should, chain) = found.get(key, (0, 0)), right.get(key, (0, 0))
        lost += max(0, should - count)
        doubled += max(0, count - should)
        disordered += count == should and checksum != chain
    return StageVerdict(lost, doubled, disordered)


def read_stage(client: redis.Redis, group: str, topic: str) -> Tally:
    """The state of a stage, as Redis holds it."""
    found: Tally = {}
    for partition in range(PARTITIONS):
        start = prefix(group, topic, partition) + b":s:"
        names = [name for name in _scan(client, start) if b"\0" not in name]
        pipe = client.pipeline(transaction=False)
        for name in names:
            pipe.hmget(name, "count", "checksum")
        for name, (count, checksum) in zip(names, pipe.execute(), strict=True):
            found[name.removeprefix(start)] = (int(count), int(checksum))
    return found


def _scan(client: redis.Redis, start: bytes) -> list[bytes]:
    quoted = start.replace(b"[", b"\\[").replace(b"*", b"\\*")
    return list(client.scan_iter(match=quoted + b"*", count=2000))


@dataclass
class Published:
    """The records of the topic between the stages: contents by id, and how often an id came again."""

    contents: dict[bytes, set[bytes]] = field(default_factory=dict)
    copies: Counter[bytes] = field(default_factory=Counter)

    @property
    def conflicting(self) -> int:
        return sum(len(contents) > 1 for contents in self.contents.values())

    @property
    def repeated(self) -> int:
        return sum(self.copies.values()) - len(self.copies)


def read_topic(connection: Mapping[str, Any], topic: str) -> list[Any]:
    """Every record of a topic, from its beginning to its present end."""
    consumer = KafkaConsumer(**connection, enable_auto_commit=False)
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    consumer.assign(partitions)
    consumer.seek_to_beginning()
    ends, records = consumer.end_offsets(partitions), []
    while any(consumer.position(tp) < end for tp, end in ends.items()):
        for batch in consumer.poll(timeout_ms=1000, max_records=5000).values():
            records += batch
    consumer.close()
    return records


def read_published(connection: Mapping[str, Any], topic: str) -> Published:
    found = Published()
    for record in read_topic(connection, topic):
        identity = dict(record.headers)[HEADER]
        found.copies[identity] += 1
        found.contents.setdefault(identity, set()).add(record.key + b" " + record.value)
    return found
