"""A failing job reaches a person: one message with cause, action and command, and none again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from integration.chain.installation import Installation, Job, installation, midwatch
from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.streams.records import Decision, Finding, Forwarded, codec
from midwatch.streams.services.reachable import kafka_options
from midwatch.streams.worker.tables import keys
from processes import wait_for
from sinks import HttpSink, http_sink

pytestmark = pytest.mark.integration

QUICK = ("--set=messages.wait=200ms", "--set=messages.timeout=500ms", "--set=messages.elsewhere=1s")
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB <!channel>"
SOON = 60.0


@pytest.fixture
def watch(stack: Endpoints, tmp_path: Path) -> Iterator[Installation]:
    with installation(tmp_path / "watch", stack) as made:
        yield made


def messages(watch: Installation, *options: str, **variables: str) -> None:
    """Start the messages worker; its settings are variables without their prefix."""
    named = {f"MIDWATCH_MESSAGES__{name}": value for name, value in variables.items()}
    watch.start("messages", *midwatch("worker", "messages", *QUICK, *options), **named)


def stop(watch: Installation) -> None:
    watch.processes["messages"].kill()
    watch.processes["messages"].wait()


def test_a_failing_job_gives_one_message_with_cause_action_and_command(
    watch: Installation, tmp_path: Path
) -> None:
    with http_sink() as slack:
        for name in ("match", "detect", "decide", "executor"):
            watch.start(name)
        messages(watch, SLACK__URL=f"{slack.url}/secret-path")
        watch.ready()
        job = watch.run(tmp_path / "job")
        job.ship()
        wait_for(lambda: job.step() > 3, "it trains", SOON)
        job.crash(("n1", OOM))
        wait_for(lambda: _about(slack, "failed"), "the message", SOON)
        (text,) = _about(slack, "failed")
        assert "CUDA out of memory" in text
        assert "&lt;!channel&gt;" in text
        assert "<!channel>" not in text
        assert "*Done*: " in text
        assert f"midwatch why {_name(job)}" in text
        told = len(slack.requests)
        wait_for(lambda: _all_committed(watch), "the group's commit follows", SOON)
        stop(watch)
        _forget(watch)
        messages(watch, SLACK__URL=f"{slack.url}/secret-path")
        watch.ready("messages")
        spike = Finding(_name(job), 2, "loss_spike", True, 1, "the loss is 9 at step 7")
        _send(watch, Forwarded(spike))
        wait_for(lambda: _about(slack, f"{_name(job)}: Loss Spike"), "a new message after the rebuild", SOON)
        assert len(_about(slack, "failed")) == 1
        assert len(slack.requests) == told + 1, [r.json["text"] for r in slack.requests]
        assert "secret-path" not in (watch.directory / "messages.log").read_text()
        job.finish()


def _name(job: Job) -> str:
    story = job.story()
    assert story is not None
    return story.job


def _about(slack: HttpSink, words: str) -> list[str]:
    return [text for each in slack.taken() if words in (text := str(each.json["text"]))]


def _forget(watch: Installation) -> None:
    """Redis loses all that the messages remember."""
    client: Any = redis.Redis.from_url(
        watch.settings.redis.url, password=watch.settings.redis.password.reveal()
    )
    prefix = keys.prefix(f"{watch.settings.topics.prefix}.messages", "", 0).split(b"/")[0]
    found = [key for key in client.scan_iter(count=1000) if key.startswith(prefix)]
    assert found
    client.delete(*found)


def _send(watch: Installation, *records: Decision | Forwarded) -> None:
    """Write records into `decisions`, as decide does."""
    producer = KafkaProducer(**kafka_options(watch.settings))
    for record in records:
        body = record.record if isinstance(record, Forwarded) else record
        producer.send(watch.settings.topic_names.decisions, codec.encode(record), key=body.job.encode()).get(
            30
        )
    producer.close()


def _all_committed(watch: Installation) -> bool:
    """Whether the messages' group has committed up to the end of `decisions`."""
    topic, group = watch.settings.topic_names.decisions, f"{watch.settings.topics.prefix}.messages"
    consumer: Any = KafkaConsumer(**kafka_options(watch.settings), group_id=group, enable_auto_commit=False)
    try:
        places = [TopicPartition(topic, n) for n in consumer.partitions_for_topic(topic)]
        ends = consumer.end_offsets(places)
        return all((consumer.committed(place) or 0) == end for place, end in ends.items())
    finally:
        consumer.close()
