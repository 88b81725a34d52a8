"""Topics of their own, a producer, a reader, and worker processes, for one test."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import redis
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition

from integration.tables.probe import probe_settings
from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.streams.services.reachable import kafka_options
from midwatch.streams.services.topic_admin import make_topics
from midwatch.streams.worker.tables import keys
from processes import wait_for

TESTS = Path(__file__).resolve().parents[2]


class Worker:
    """One process of the probe."""

    def __init__(self, options: dict[str, Any], directory: Path) -> None:
        self.ready_file = directory / f"{secrets.token_hex(4)}.ready"
        self._log = self.ready_file.with_suffix(".log")
        told = json.dumps({**options, "ready_file": str(self.ready_file), "directory": str(directory)})
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "integration.tables.probe", told],
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONPATH": str(TESTS)},
            )

    def log(self) -> str:
        return self._log.read_text()

    def await_ready(self) -> Worker:
        wait_for(
            lambda: self.ready_file.exists() or self.process.poll() is not None, f"the worker:\n{self.log()}"
        )
        assert self.process.poll() is None, self.log()
        return self

    def exit_code(self, within_s: float = 60.0) -> int:
        return self.process.wait(within_s)

    def stop(self) -> int:
        self.process.terminate()
        return self.exit_code()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


class Workplace:
    """One prefix of topics."""

    def __init__(
        self,
        stack: Endpoints,
        directory: Path,
        kind: str,
        *,
        topics: bool = True,
        session_timeout: float = 2.0,
    ) -> None:
        self.options: dict[str, Any] = {
            "kind": kind,
            "prefix": f"probe-{secrets.token_hex(4)}",
            "kafka": stack.kafka,
            "username": stack.kafka_username,
            "password": stack.kafka_password,
            "redis_url": stack.redis_url,
            "directory": str(directory),
            "session_timeout": session_timeout,
        }
        self.directory = directory
        self.settings = probe_settings(self.options)
        self.names = self.settings.topic_names
        self.group = f"{self.options['prefix']}-{kind}"
        self.connection: dict[str, Any] = kafka_options(self.settings)
        self.redis: Any = redis.Redis.from_url(stack.redis_url)
        if topics:
            make_topics(self.settings)
        self.producer = KafkaProducer(**self.connection)
        self.workers: list[Worker] = []

    def worker(self) -> Worker:
        self.workers.append(Worker(self.options, self.directory))
        return self.workers[-1]

    def send(self, topic: str, key: bytes | None, value: bytes, partition: int | None = None) -> None:
        """Returns when Kafka has it."""
        self.producer.send(topic, value, key=key, partition=partition).get(30)

    def read(self, topic: str) -> list[Any]:
        """All records of the topic so far."""
        consumer = KafkaConsumer(**self.connection, enable_auto_commit=False)
        partitions = [TopicPartition(topic, p) for p in sorted(consumer.partitions_for_topic(topic))]
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        ends, records = consumer.end_offsets(partitions), []
        while any(consumer.position(tp) < end for tp, end in ends.items()):
            for batch in consumer.poll(timeout_ms=500).values():
                records += batch
        consumer.close()
        return records

    def values(self, topic: str, key: bytes | None = None) -> list[bytes]:
        return [record.value for record in self.read(topic) if key is None or record.key == key]

    def committed(self, topic: str) -> dict[int, int]:
        admin = KafkaAdminClient(**self.connection)
        told = admin.list_group_offsets([self.group])[self.group]
        admin.close()
        return {tp.partition: offset.offset for tp, offset in told.items() if tp.topic == topic}

    def state(self, partition: int, key: bytes) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = self.redis.hgetall(
            keys.state_key(self.group, self.names.events, partition, key)
        )
        return found

    def lose_redis(self) -> None:
        """Delete all that the group has in Redis; other tests use the same server."""
        names = list(self.redis.scan_iter(match=f"mw:{{{self.group}/*", count=1000))
        assert names
        self.redis.delete(*names)

    def close(self) -> None:
        for worker in self.workers:
            if worker.process.poll() is None:
                worker.kill()
        self.producer.close()
        self.redis.close()
