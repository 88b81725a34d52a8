"""Bad records among good ones, on a real Kafka and Redis with real workers: each is set aside with its
reason, and the job behind it is watched, judged and rescued as if it had never come."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from bad_input.case import OTHER
from bad_input.logs_cases import BEAT, ORIGIN, table
from integration.chain.installation import Installation, Job, installation
from integration.reload.swaps import pushed
from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.agents.signing import ensure_keys, new_signer
from midwatch.streams.records import CURRENT, Command, DeadLetter, Decision, Outcome, codec
from midwatch.streams.records.effect_keys import command_id
from midwatch.streams.records.identity import message_key
from midwatch.streams.services.reachable import kafka_options
from processes import wait_for

pytestmark = pytest.mark.integration

LIMITS = ("--limit=training=6s", "--limit=startup=60s")
OWN_RULE = """version: 1
rules:
  - {name: mesh_lost, pattern: the mesh was lost, error_type: communication, transient: true}
"""
DEEP = b'{"record":"beat","v":1,"x":' + b"[" * 100_000


class Topics:
    """What stands in the topics, and a hand that may write anything into them."""

    def __init__(self, watch: Installation) -> None:
        self.settings = watch.settings
        self.names = watch.settings.topic_names
        self._options: dict[str, Any] = kafka_options(watch.settings)
        self._producer = KafkaProducer(**self._options)

    def write(
        self, topic: str, value: bytes | None, key: bytes | None = None, headers: codec.Headers = ()
    ) -> None:
        self._producer.send(topic, value=value, key=key, headers=list(headers)).get(30)

    def write_log(self, made: codec.Encoded, key: bytes) -> None:
        self.write(self.names.logs, made.value, key, made.headers)

    def read(self, topic: str) -> list[Any]:
        consumer: Any = KafkaConsumer(**self._options, enable_auto_commit=False)
        partitions = [TopicPartition(topic, p) for p in sorted(consumer.partitions_for_topic(topic))]
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        ends, records = consumer.end_offsets(partitions), []
        while any(consumer.position(tp) < end for tp, end in ends.items()):
            for batch in consumer.poll(timeout_ms=500).values():
                records += batch
        consumer.close()
        return records

    def letters(self, topic: str) -> list[DeadLetter]:
        """The dead letters of one topic."""
        found = [codec.decode(message.value) for message in self.read(self.names.dead)]
        return [letter for letter in found if letter.topic == topic]

    def close(self) -> None:
        self._producer.close()


@pytest.fixture(scope="module")
def watch(stack: Endpoints, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with installation(tmp_path_factory.mktemp("watch"), stack) as made:
        for name in ("match", "detect", "decide", "executor"):
            made.start(name)
        made.ready()
        yield made


@pytest.fixture(scope="module")
def topics(watch: Installation) -> Iterator[Topics]:
    made = Topics(watch)
    yield made
    made.close()


@pytest.fixture(scope="module")
def job(watch: Installation, tmp_path_factory: pytest.TempPathFactory) -> Job:
    made = watch.run(tmp_path_factory.mktemp("jobs") / "job", *LIMITS, nodes=("n0",))
    made.ship()
    wait_for(lambda: made.step() > 5, "progress is seen", 60)
    return made


def _whole_name(job: Job) -> str:
    story = job.story()
    assert story is not None
    return story.job


def _log(watch: Installation, name: str) -> str:
    return (watch.directory / f"{name}.log").read_text()


def _still_watched(job: Job) -> None:
    step = job.step()
    wait_for(lambda: job.step() > step, "progress goes on", 60)


def _await_letters(topics: Topics, topic: str, kinds: list[str]) -> list[DeadLetter]:
    wait_for(lambda: len(topics.letters(topic)) >= len(kinds), f"{kinds} of {topic}", 60)
    letters = topics.letters(topic)
    assert sorted(letter.kind for letter in letters) == sorted(kinds)
    return letters


def test_bad_records_on_logs_are_set_aside_by_match(watch: Installation, topics: Topics, job: Job) -> None:
    name = _whole_name(job)
    key = message_key(name, "n0")
    origin = replace(ORIGIN, job=name)
    topics.write(topics.names.logs, b"\x00\xff no record", key)
    topics.write(topics.names.logs, None, key)
    topics.write(topics.names.logs, b'{"message": "a foreign line"}', key)
    topics.write(topics.names.logs, DEEP, key)
    topics.write_log(table(lambda told: told["sections"][0].update(size=3)), key)
    topics.write_log(codec.encode_log(replace(BEAT, origin=replace(origin, job=OTHER))), key)
    newer = codec.encode(replace(BEAT, origin=origin)).replace(b'"v":1', b'"v":9')
    topics.write(topics.names.logs, newer, key)
    kinds = ["malformed", "malformed", "foreign", "malformed", "malformed", "misdirected", "newer"]
    letters = _await_letters(topics, topics.names.logs, kinds)
    assert any("set foreign.shipper" in letter.reason for letter in letters)
    assert any("does not add up" in letter.reason for letter in letters)
    assert _log(watch, "match").count("wrote a record to the dead-letter topic") == len(kinds)
    _still_watched(job)


def test_bad_records_on_events_are_set_aside_by_detect_and_hold_nobody(
    watch: Installation, topics: Topics, job: Job
) -> None:
    name = _whole_name(job)
    good = replace(BEAT, origin=replace(ORIGIN, job=name))
    topics.write(topics.names.events, b"{", name.encode())
    backwards = codec.encode(good).replace(b'"sequence":7', b'"sequence":-7')
    topics.write(topics.names.events, backwards, name.encode())
    topics.write(topics.names.events, codec.encode(replace(good, origin=ORIGIN)), name.encode())
    topics.write(topics.names.events, codec.encode(good), b"\xff\xfe")
    _await_letters(topics, topics.names.events, ["malformed", "malformed", "misdirected", "malformed"])
    assert _log(watch, "detect").count("wrote a record to the dead-letter topic") == 4
    _still_watched(job)
    assert not job.findings("poisoned")


def test_bad_orders_are_set_aside_by_the_executor_and_do_nothing(
    watch: Installation, topics: Topics, job: Job
) -> None:
    name = _whole_name(job)
    now = int(time.time() * 1000)
    story = job.story()
    assert story is not None
    assert story.spec is not None
    order = Command(
        id=command_id(name, 1, 1), job=name, attempt=1, seq=1, action="cancel", incarnation=job.incarnation(),
        incident="i", revision=1, reason="forged", not_before_ms=now, expires_ms=now + 300_000,
        issuer="eve", spec=story.spec.spec, bundle="",
    )  # fmt: skip
    commands = topics.names.commands
    topics.write(commands, codec.encode(order), name.encode())
    topics.write(commands, codec.encode(new_signer().sign(order)), name.encode())
    signed = ensure_keys(watch.settings.state_directory).sign(order)
    topics.write(commands, codec.encode(signed), OTHER.encode())
    topics.write(commands, DEEP.replace(b"beat", b"command"), name.encode())
    topics.write(commands, b"x" * 900_000, name.encode())
    _await_letters(topics, commands, ["unsigned", "unsigned", "misdirected", "malformed", "malformed"])
    assert _log(watch, "executor").count("a record went to the dead-letter topic") >= 5
    _still_watched(job)
    assert job.starts() == 1
    assert not [r for r in job.records() if isinstance(r, Outcome)], "a stranger's order is answered nowhere"


def test_a_bad_spec_is_set_aside_and_the_executor_goes_on(
    watch: Installation, topics: Topics, job: Job
) -> None:
    topics.write(topics.names.specs, b"{", b"whoever")
    topics.write(topics.names.specs, codec.encode(BEAT), b"whoever")
    _await_letters(topics, topics.names.specs, ["malformed", "misdirected"])
    assert watch.processes["executor"].poll() is None
    _still_watched(job)


def test_a_bad_incident_holds_its_job_and_says_so_and_no_other_job(
    watch: Installation, topics: Topics, job: Job
) -> None:
    topics.write(topics.names.incidents, b'{"record":"incident","v":1}', OTHER.encode())
    wait_for(lambda: bool(topics.letters(topics.names.incidents)), "the letter", 60)
    told = [m.value for m in topics.read(topics.names.decisions) if m.key == OTHER.encode()]
    (held,) = [codec.decode(value) for value in told]
    assert isinstance(held, Decision)
    assert (held.action, "midwatch arm" in held.reason) == ("hold", True)
    assert not [d for d in job.decisions() if "could not be read" in d.reason]
    assert watch.processes["decide"].poll() is None


def test_bad_records_on_rules_are_set_aside_and_the_next_push_is_in_force(
    watch: Installation, topics: Topics, job: Job, tmp_path: Path
) -> None:
    beat = codec.encode(BEAT)
    for bad in (b"{", DEEP, beat, beat.replace(b'"v":1', b'"v":9')):
        topics.write(topics.names.rules, bad, CURRENT)
    kinds = ["malformed", "malformed", "misdirected", "newer"]
    letters = _await_letters(topics, topics.names.rules, kinds)
    assert {letter.key for letter in letters} == {CURRENT}
    for name in ("match", "detect", "decide"):
        wait_for(lambda n=name: _log(watch, n).count("stays in force: ") == len(kinds), name, 60)  # type: ignore[misc]  # bound at once
    own = tmp_path / "own.yaml"
    own.write_text(OWN_RULE)
    good = f"bundle {pushed(watch, str(own))} is in force"
    wait_for(lambda: good in _log(watch, "match"), "match takes the good one", 60)
    _still_watched(job)


def test_after_all_of_it_a_hang_is_still_found_and_rescued_once(topics: Topics, job: Job) -> None:
    job.tell("hang")
    wait_for(lambda: job.starts() == 2, "a second start", 60)
    assert len(job.commands()) == 1
    assert {letter.kind for letter in topics.letters(topics.names.logs)} >= {"malformed", "foreign", "newer"}
