"""A record of the next version reaches this detect: it waits, says so, and is folded after the upgrade."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer
from kafka.partitioner.default import murmur2

from integration.chain.installation import Installation, installation
from midwatch.agents.reading import messages_of
from midwatch.streams import codec
from midwatch.streams.embedded.stack import Endpoints
from midwatch.streams.records import Incident, SchedulerFact
from midwatch.streams.services import kafka_options
from processes import wait_for

NEWER = Path(__file__).with_name("newer_detect.py")
SOON = 90.0


@pytest.fixture
def watch(stack: Endpoints, tmp_path: Path) -> Iterator[Installation]:
    with installation(tmp_path / "watch", stack) as made:
        made.start("detect")
        made.ready()
        yield made


def _jobs(watch: Installation) -> tuple[str, str]:
    """Two jobs that do not share a partition."""
    partitions = watch.settings.topics.partitions.events
    place = {name: (murmur2(name.encode()) & 0x7FFFFFFF) % partitions for name in _names()}
    first = next(iter(place))
    return first, next(name for name, number in place.items() if number != place[first])


def _names() -> list[str]:
    return [f"local:ada/job-{number}" for number in range(20)]


def _fact(job: str, *, ended: bool) -> SchedulerFact:
    words = ("running", "failed") if ended else ("", "running")
    return SchedulerFact(job, "local:1:1", "1", *words, ended, mode="crash" if ended else None)


def _told(watch: Installation, job: str) -> list[Incident]:
    topic = watch.settings.topic_names.incidents
    values = [m.value for m in messages_of(watch.settings, topic, job.encode())]
    # The newer detect writes its own version; here nothing but the number is new.
    records = [codec.decode(value.replace(b'"v":2', b'"v":1')) for value in values]
    return [record for record in records if isinstance(record, Incident) and record.job == job]


def test_its_partition_waits_the_others_go_on_and_the_upgrade_reads_it(watch: Installation) -> None:
    waiting, going = _jobs(watch)
    topic = watch.settings.topic_names.events
    producer: Any = KafkaProducer(**kafka_options(watch.settings))

    def say(job: str, value: bytes) -> None:
        producer.send(topic, value, key=job.encode()).get(30)

    try:
        say(waiting, codec.encode(_fact(waiting, ended=False)))
        say(waiting, codec.encode(_fact(waiting, ended=True)).replace(b'"v":1', b'"v":2'))
        for ended in (False, True):
            say(going, codec.encode(_fact(going, ended=ended)))
        wait_for(lambda: bool(_told(watch, going)), "the other partition goes on", SOON)
        log = watch.directory / "detect.log"
        wait_for(lambda: "stands still until this worker is upgraded" in log.read_text(), "it says so", SOON)
        assert "version 2; this midwatch reads up to 1" in log.read_text()
        assert _told(watch, waiting) == []

        watch.replace("detect", sys.executable, "-P", str(NEWER))
        wait_for(lambda: bool(_told(watch, waiting)), "the newer one folds it", SOON)
        incident = _told(watch, waiting)[0]
        assert (incident.attempt, incident.state, incident.cut) == (1, "ended", False)
    finally:
        producer.close()
