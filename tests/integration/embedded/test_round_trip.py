"""Clients with the password do their work on the embedded Kafka and Redis; others are refused."""

from __future__ import annotations

import aiokafka
import pytest
import redis
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError

from embedded_stack import MakeTopic
from midwatch.agents.local.embedded.stack import Endpoints

from .client import login

pytestmark = pytest.mark.integration

CODECS = ("gzip", "snappy", "lz4", "zstd")


def test_kafka_python_reads_what_it_wrote(stack: Endpoints, topics: MakeTopic) -> None:
    topic = topics("lines", partitions=3)
    producer = KafkaProducer(**login(stack), compression_type="lz4")
    sent = {(f"job-{n}".encode(), b"x" * 1000) for n in range(100)}
    for key, value in sorted(sent):
        producer.send(topic, key=key, value=value)
    producer.flush(30)
    producer.close()

    consumer = KafkaConsumer(
        topic, **login(stack), auto_offset_reset="earliest", consumer_timeout_ms=30_000, group_id=None
    )
    got = set()
    for record in consumer:
        got.add((record.key, record.value))
        if len(got) == len(sent):
            break
    consumer.close()
    assert got == sent


@pytest.mark.parametrize("codec", CODECS)
async def test_aiokafka_reads_what_it_wrote_with_every_codec(
    stack: Endpoints, topics: MakeTopic, codec: str
) -> None:
    topic = topics(codec)
    async with aiokafka.AIOKafkaProducer(
        **login(stack), compression_type=codec, enable_idempotence=True
    ) as producer:
        for n in range(20):
            await producer.send_and_wait(topic, b"line %d " % n * 50)
    async with aiokafka.AIOKafkaConsumer(
        topic, **login(stack), group_id=topic, auto_offset_reset="earliest", session_timeout_ms=1000
    ) as consumer:
        got = [(await consumer.getone()).value for _ in range(20)]
    assert got == [b"line %d " % n * 50 for n in range(20)]


def test_a_record_of_nearly_two_megabytes_is_taken(stack: Endpoints, topics: MakeTopic) -> None:
    producer = KafkaProducer(**login(stack), max_request_size=2 << 20)
    metadata = producer.send(topics("large"), b"x" * (2_000_000)).get(30)
    producer.close()
    assert metadata.offset == 0


def test_kafka_refuses_a_wrong_password(stack: Endpoints) -> None:
    with pytest.raises(KafkaError):
        KafkaProducer(**login(stack) | {"sasl_plain_password": "guessed"}, bootstrap_timeout_ms=3000)


def test_a_topic_that_nobody_made_does_not_come_into_being(stack: Endpoints) -> None:
    producer = KafkaProducer(**login(stack), max_block_ms=1000)
    with pytest.raises(KafkaError):
        producer.send("never-made", b"x").get(10)
    producer.close()


def test_redis_keeps_and_asks_for_the_password(stack: Endpoints) -> None:
    with redis.Redis.from_url(stack.redis_url) as client:
        client.set("midwatch-test", "1")
        assert client.get("midwatch-test") == b"1"
        assert client.config_get("append*")["appendfsync"] == "always"
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert client.config_get("save") == {"save": ""}
    host, _, port = stack.redis_url.rpartition("@")[2].removesuffix("/0").partition(":")
    with redis.Redis(host, int(port)) as stranger, pytest.raises(redis.AuthenticationError):
        stranger.get("midwatch-test")
