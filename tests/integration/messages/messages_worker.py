"""A messages worker of an installation, and what it reads and remembers."""

from __future__ import annotations

import time
from typing import Any

import redis
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from integration.chain.installation import Installation, midwatch
from midwatch.streams.records import Decision, Forwarded, codec
from midwatch.streams.services.reachable import kafka_options

SOON = 60.0
_QUICK = {"WAIT": "200ms", "TIMEOUT": "500ms", "ELSEWHERE": "1s"}


def start(watch: Installation, *, failpoint: str = "", **variables: str) -> None:
    """Its settings are variables without their prefix. Nobody starts it again."""
    named = {f"MIDWATCH_MESSAGES__{name}": value for name, value in (_QUICK | variables).items()}
    if failpoint:
        named["MIDWATCH_FAILPOINT"] = failpoint
    watch.start("messages", *midwatch("worker", "messages", "--set=worker.instance_id=messages-1"), **named)


def kill(watch: Installation) -> None:
    watch.processes["messages"].kill()
    watch.processes["messages"].wait()


def send(watch: Installation, *records: Decision | Forwarded, age_s: float = 0.0) -> None:
    """Write records into `decisions`, as decide does, or did some time ago."""
    at_ms = int((time.time() - age_s) * 1000)
    topic = watch.settings.topic_names.decisions
    producer = KafkaProducer(**kafka_options(watch.settings))
    for record in records:
        body = record.record if isinstance(record, Forwarded) else record
        producer.send(topic, codec.encode(record), key=body.job.encode(), timestamp_ms=at_ms)
    producer.flush(30)
    producer.close()


def all_committed(watch: Installation) -> bool:
    """Whether the messages' group has committed up to the end of `decisions`."""
    topic, group = watch.settings.topic_names.decisions, f"{watch.settings.topics.prefix}.messages"
    consumer: Any = KafkaConsumer(**kafka_options(watch.settings), group_id=group, enable_auto_commit=False)
    try:
        places = [TopicPartition(topic, n) for n in consumer.partitions_for_topic(topic)]
        ends = consumer.end_offsets(places)
        return all((consumer.committed(place) or 0) == end for place, end in ends.items())
    finally:
        consumer.close()


def forget(watch: Installation) -> None:
    """Redis loses all that the messages remember."""
    given = watch.settings.redis
    client: Any = redis.Redis.from_url(given.url, password=given.password.reveal())
    found = list(client.scan_iter(match=f"mw:{{{watch.settings.topics.prefix}.messages/*", count=1000))
    assert found
    client.delete(*found)
