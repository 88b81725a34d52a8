"""A record of the next version reaches detect or decide: it waits, and is folded after the upgrade."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer

from integration.chain.installation import Installation, installation
from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.agents.query.topic_reader import messages_of
from midwatch.streams.records import Decision, Incident, SchedulerFact, Verdict, codec
from midwatch.streams.services.partitioner import partition_of
from midwatch.streams.services.reachable import kafka_options
from processes import wait_for

NEWER = Path(__file__).with_name("newer_worker.py")
SOON = 90.0


@dataclass(frozen=True)
class Reader:
    """A worker: what it reads, two records of a job, and what it says of the second (none of the first)."""

    name: str
    topic: str
    records: Callable[[str], tuple[object, object]]
    answers: str
    said: Callable[[object], bool]


def _facts(job: str) -> tuple[object, object]:
    started = SchedulerFact(job, "local:1:1", "1", "", "running", ended=False)
    return started, SchedulerFact(job, "local:1:1", "1", "running", "failed", ended=True, mode="crash")


def _incidents(job: str) -> tuple[object, object]:
    about = (f"{job}#1", job, 1, "local:1:1")
    verdict = Verdict(state="failed", mode="crash", error_type="unknown")
    return Incident(*about, "suspected", 0, verdict), Incident(*about, "settled", 1, verdict)


def _ended(record: object) -> bool:
    return isinstance(record, Incident) and (record.attempt, record.state, record.cut) == (1, "ended", False)


def _asked(record: object) -> bool:
    return isinstance(record, Decision) and (record.attempt, record.action) == (1, "hold")


READERS = (
    Reader("detect", "events", _facts, "incidents", _ended),
    Reader("decide", "incidents", _incidents, "decisions", _asked),
)


@pytest.fixture
def watch(stack: Endpoints, tmp_path: Path) -> Iterator[Installation]:
    with installation(tmp_path / "watch", stack) as made:
        yield made


def _jobs(partitions: int) -> tuple[str, str]:
    """Two jobs that do not share a partition."""
    place = {name: partition_of(name.encode(), partitions) for name in _names()}
    first = next(iter(place))
    return first, next(name for name, number in place.items() if number != place[first])


def _names() -> list[str]:
    return [f"local:ada/job-{number}" for number in range(20)]


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_its_partition_waits_the_others_go_on_and_the_upgrade_reads_it(
    reader: Reader, watch: Installation
) -> None:
    watch.start(reader.name)
    watch.ready()
    waiting, going = _jobs(getattr(watch.settings.topics.partitions, reader.topic))
    topic = getattr(watch.settings.topic_names, reader.topic)
    producer: Any = KafkaProducer(**kafka_options(watch.settings))

    def say(job: str, value: bytes) -> None:
        producer.send(topic, value, key=job.encode()).get(30)

    def told(job: str) -> list[object]:
        key, answers = job.encode(), getattr(watch.settings.topic_names, reader.answers)
        values = [m.value for m in messages_of(watch.settings, answers, key) if m.key == key]
        # The newer one writes its own version; here nothing but the number is new.
        return [codec.decode(value.replace(b'"v":2', b'"v":1')) for value in values]

    try:
        first, second = map(codec.encode, reader.records(waiting))
        say(waiting, first)
        say(waiting, second.replace(b'"v":1', b'"v":2'))
        for record in reader.records(going):
            say(going, codec.encode(record))
        wait_for(lambda: any(map(reader.said, told(going))), "the other partition goes on", SOON)
        log = watch.directory / f"{reader.name}.log"
        wait_for(lambda: "is stopped until this worker is upgraded" in log.read_text(), "it says so", SOON)
        assert "version 2; this midwatch reads up to 1" in log.read_text()
        assert told(waiting) == []

        watch.replace(reader.name, sys.executable, "-P", str(NEWER), reader.name)
        wait_for(lambda: any(map(reader.said, told(waiting))), "the newer one folds it", SOON)
    finally:
        producer.close()
