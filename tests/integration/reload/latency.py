"""How soon a worker matched by a bundle: until the worker's own word in its log."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from kafka import KafkaConsumer, TopicPartition

from midwatch.streams.records import CURRENT, InForce, codec
from midwatch.streams.services.reachable import kafka_options
from midwatch.streams.settings.schema import Settings

_TAKEN = re.compile(r"(\S+)Z INFO midwatch\.agents\.reload\.follower bundle (\w+) is in force")


def seconds_until_taken(changes: Sequence[tuple[float, str]], logs: Sequence[Path]) -> list[float]:
    """From each change, a time and the bundle that came of it, until each of the logs says that it was taken;
    a worker may have passed one over for a later one."""
    seconds: list[float] = []
    for log in logs:
        taken = [
            (datetime.fromisoformat(found[1]).replace(tzinfo=UTC).timestamp(), found[2])
            for line in log.read_text(errors="replace").splitlines()
            if (found := _TAKEN.match(line))
        ]
        for at, bundle in changes:
            later = [moment for moment, hash_ in taken if hash_ == bundle and moment >= at]
            seconds += [moment - at for moment in later[:1]]
    return seconds


def put_in_force(settings: Settings) -> list[tuple[float, str]]:
    """When which bundle came into force, by the topic."""
    consumer = KafkaConsumer(**kafka_options(settings), group_id=None, enable_auto_commit=False)
    try:
        partition = TopicPartition(settings.topic_names.rules, 0)
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        end, found = consumer.end_offsets([partition])[partition], list[tuple[float, str]]()
        while consumer.position(partition) < end:
            for message in consumer.poll(timeout_ms=500).get(partition, ()):
                record = codec.decode(message.value) if message.key == CURRENT else None
                if isinstance(record, InForce):
                    found.append((message.timestamp / 1000, record.bundle))
        return found
    finally:
        consumer.close()
