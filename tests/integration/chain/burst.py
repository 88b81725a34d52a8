"""What waits for match while it stands still, and the names of jobs whose nodes wait in one line."""

from __future__ import annotations

import getpass
import secrets
from collections import Counter
from types import TracebackType
from typing import Any, Self

from kafka import KafkaConsumer, TopicPartition

from midwatch.streams.records import Heartbeat
from midwatch.streams.records.codec import decode_log
from midwatch.streams.records.identity import job_name, message_key
from midwatch.streams.services.partitioner import partition_of
from midwatch.streams.services.reachable import kafka_options
from midwatch.streams.settings.schema import Settings


def name_for_one_partition(nodes: tuple[str, ...], settings: Settings) -> str:
    """A run's name with which the messages of all nodes share a partition, so that they have one order."""
    count = settings.topics.partitions.logs
    while True:
        name = f"job-{secrets.token_hex(4)}"
        job = str(job_name(name, user=getpass.getuser()))
        if len({partition_of(message_key(job, node), count) for node in nodes}) == 1:
            return name


class Burst:
    """What is appended for the nodes of one job from `begin` on."""

    def __init__(self, settings: Settings, name: str, nodes: tuple[str, ...]) -> None:
        self._nodes = nodes
        self._job = str(job_name(name, user=getpass.getuser()))
        number = partition_of(message_key(self._job, nodes[0]), settings.topics.partitions.logs)
        self._place = TopicPartition(settings.topic_names.logs, number)
        self._beats: Counter[str] = Counter()
        self._consumer: Any = KafkaConsumer(**kafka_options(settings), enable_auto_commit=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._consumer.close()

    def begin(self) -> None:
        self._consumer.assign([self._place])
        self._consumer.seek_to_end(self._place)
        self._consumer.position(self._place)  # fixes the place; seeking alone is put off until the next poll

    def beats_of_every_node(self, count: int) -> bool:
        """Whether so many have come of each."""
        for messages in self._consumer.poll(timeout_ms=200).values():
            for message in messages:
                record = decode_log(message.value, message.headers)
                if record.origin.job == self._job and isinstance(record, Heartbeat):
                    self._beats[record.origin.node] += 1
        return all(self._beats[node] >= count for node in self._nodes)
