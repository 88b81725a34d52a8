"""A few records in and out, for tests that ask whether data are still there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import redis
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import NewTopic

from midwatch.agents.local.embedded.stack import Endpoints

RUN = """
import sys
from pathlib import Path
from midwatch.agents.local.embedded.stack import EmbeddedStack
stack = EmbeddedStack(Path(sys.argv[1]))
stack.start()
children = [stack.kafka._child, stack.redis._child]
print(*(child.pid for child in children), *(child._supervisor.pid for child in children), flush=True)
sys.stdin.read()
"""


def login(endpoints: Endpoints) -> dict[str, Any]:
    """Settings of kafka-python and aiokafka for the stack."""
    return {
        "bootstrap_servers": endpoints.kafka,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": endpoints.kafka_username,
        "sasl_plain_password": endpoints.kafka_password,
    }


def make_topic(endpoints: Endpoints, name: str) -> None:
    admin = KafkaAdminClient(**login(endpoints))
    admin.create_topics([NewTopic(name, num_partitions=1, replication_factor=1)])
    admin.close()


def write(endpoints: Endpoints, topic: str, count: int) -> None:
    """Writes `count` records to `topic` and as many keys to Redis; returns when all are acknowledged."""
    producer = KafkaProducer(**login(endpoints))
    for sent in [producer.send(topic, b"%d" % n) for n in range(count)]:
        sent.get(30)
    producer.close()
    with redis.Redis.from_url(endpoints.redis_url) as client:
        for n in range(count):
            client.set(f"{topic}:{n}", n)


def read(endpoints: Endpoints, topic: str, count: int) -> tuple[list[int], list[int]]:
    """What Kafka and Redis have of `write`, in order."""
    consumer = KafkaConsumer(
        topic, **login(endpoints), group_id=None, auto_offset_reset="earliest", consumer_timeout_ms=30_000
    )
    records: list[int] = []
    while len(records) < count and (record := next(consumer, None)):
        records.append(int(record.value))
    consumer.close()
    with redis.Redis.from_url(endpoints.redis_url) as client:
        kept = client.mget([f"{topic}:{n}" for n in range(count)])
    return records, [int(value) for value in kept if value is not None]


class OtherMidwatch:
    """A stack that another process runs, to be killed."""

    def __init__(self, state_directory: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", RUN, state_directory], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.pid = self._process.pid
        assert self._process.stdout is not None
        self.pids = [int(pid) for pid in self._process.stdout.readline().split()]
        assert len(self.pids) == 4, "the other midwatch did not start"
        self.kafka, self.redis, self.kafka_supervisor, self.redis_supervisor = self.pids

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()
