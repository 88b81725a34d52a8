"""`commands` and `specs`, through the executor's own reading: nothing that a stranger wrote is believed."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from kafka import TopicPartition

from bad_input.case import AT_MS, JOB, OTHER, Case, Outcome, assert_refused, ids
from midwatch.agents import reporter as report
from midwatch.agents.executor import consumer
from midwatch.agents.reporter import Reporter, received
from midwatch.agents.signing import new_signer, spec_hash
from midwatch.agents.watcher import census_reader as reader
from midwatch.agents.watcher.census_reader import CensusReader
from midwatch.streams.records import Command, Heartbeat, Origin, Spec, codec
from midwatch.streams.records.effect_keys import command_id
from midwatch.streams.settings.schema import KafkaSettings, Settings
from midwatch.streams.worker.fold import DEAD_VALUE_LIMIT, Send

SIGNER = new_signer()
ORDER = Command(
    id=command_id(JOB, 1, 1), job=JOB, attempt=1, seq=1, action="restart", incarnation="local:1:1",
    incident="i", revision=1, reason="transient", not_before_ms=AT_MS, expires_ms=AT_MS + 60_000,
    issuer="decide", spec="s", bundle="",
)  # fmt: skip
SIGNED = SIGNER.sign(ORDER)
SPEC = SIGNER.sign(Spec(JOB, "local", ("true",), "/", {}, "ada", (), "", "verdict", True))
KEY = JOB.encode()
BEAT = Heartbeat(Origin(JOB, "n0", 1, "local:1:1", "boot", "shipper"), 7, 1.0, 100.0, 5.0, True, 0)


def _changed(made: object, **fields: Any) -> bytes:
    return json.dumps(json.loads(codec.encode(made)) | fields).encode()


@dataclass
class Received:
    """A message as kafka-python gives it."""

    value: bytes | None
    key: bytes | None = KEY
    topic: str = "midwatch.commands"
    partition: int = 3
    offset: int = 17
    timestamp: int = AT_MS


@dataclass
class Answer:
    def get(self, timeout: float) -> None:
        """Kafka has it."""


@dataclass
class Producer:
    """Kafka's side of the reporter: keeps what it is sent."""

    sent: list[Send] = field(default_factory=list)

    def send(self, topic: str, key: bytes, value: bytes, headers: object = None) -> Answer:  # noqa: ARG002 - as the real one takes it
        self.sent.append(Send(topic, key, value))
        return Answer()


@pytest.fixture
def settings() -> Settings:
    return Settings(kafka=KafkaSettings(bootstrap=("localhost:9",)))


@pytest.fixture
def producer(monkeypatch: pytest.MonkeyPatch) -> Producer:
    made = Producer()
    monkeypatch.setattr(report, "KafkaProducer", lambda **_: made)
    return made


def _told(reporter: Reporter, producer: Producer) -> Outcome:
    outcome = Outcome().sort(producer.sent, "midwatch.dead")
    outcome.counted = {kind: count for (_, kind), count in reporter.counters.refused.items()}
    return outcome


ORDERS = (
    Case("a tombstone", "not a record", value=None),
    Case("bytes that are no record", "not a record", value=b"\x00\xff"),
    Case("JSON nested 100,000 deep", "too deeply", value=b'{"record":"command","v":1,"x":' + b"[" * 100_000),
    Case("a newer version", "version 9", "newer", value=_changed(SIGNED, v=9)),
    Case("an unknown kind", "unknown kind", "newer", value=b'{"record":"decree","v":1}'),
    Case("a kind of a hundred thousand letters", "unknown kind", "newer",
         value=_changed(SIGNED, record="x" * 100_000)),
    Case("a record of another topic", "no place among the commands", "misdirected", value=codec.encode(BEAT)),
    Case("another job's key", f"a command for {JOB} under the key b'{OTHER}'", "misdirected",
         value=codec.encode(SIGNED), key=OTHER.encode()),
    Case("no signature", "not signed by this installation's key", "unsigned", value=codec.encode(ORDER)),
    Case("a foreign key's signature", "not signed by this installation's key", "unsigned",
         value=codec.encode(new_signer().sign(ORDER))),
    Case("a signature that is no base64", "not signed", "unsigned", value=_changed(SIGNED, signature="ü\n")),
    Case("a signed order for one more attempt", "not signed", "unsigned",
         value=codec.encode(replace(SIGNED, attempt=2))),
    Case("a signed order that expires later", "not signed", "unsigned",
         value=codec.encode(replace(SIGNED, expires_ms=AT_MS * 2))),
    Case("an expiry beyond any calendar", "$.expires_ms", value=_changed(SIGNED, expires_ms=10**30)),
    Case("an action that is none", "$.action", value=_changed(SIGNED, action="rm -rf /")),
    Case("a parameter of forty digits", "$.parameters", value=_changed(SIGNED, parameters={"n": 10**40})),
    Case("a negative number of the order", "$.seq", value=_changed(SIGNED, seq=-1)),
)  # fmt: skip


@pytest.mark.parametrize("case", ORDERS, ids=ids(ORDERS))
def test_a_bad_order_is_set_aside_told_and_answered_nowhere(
    case: Case, settings: Settings, producer: Producer, capsys: pytest.CaptureFixture[str]
) -> None:
    reporter = Reporter(settings)
    assert isinstance(case.value, bytes | None)
    message = Received(case.value, KEY if case.key is None else case.key)
    assert consumer.read_command(message, SIGNER.verifier(), reporter) is None
    outcome = _told(reporter, producer)
    assert_refused(outcome, case)
    assert outcome.sent == []
    (letter,) = outcome.letters
    assert (letter.partition, letter.offset) == (3, 17)
    said = capsys.readouterr().err
    assert case.said in said
    assert said.count("\n") == 1
    good = consumer.read_command(Received(codec.encode(SIGNED)), SIGNER.verifier(), reporter)
    assert good == SIGNED


def test_a_megabyte_that_cannot_be_read_fits_into_its_dead_letter(
    settings: Settings, producer: Producer
) -> None:
    Reporter(settings).dead(received(Received(b"x" * 1_000_000)), ValueError("y" * 1_000_000))
    (send,) = producer.sent
    assert len(send.value or b"") < 2 * DEAD_VALUE_LIMIT


class Consumer:
    """Kafka's side of the census: one poll gives all."""

    def __init__(self, messages: list[Received]) -> None:
        self.messages = messages

    def partitions_for_topic(self, topic: str) -> set[int]:
        return {3} if topic == "midwatch.specs" else {0}

    def assign(self, _partitions: Any) -> None: ...
    def seek_to_beginning(self, *_partitions: Any) -> None: ...
    def close(self) -> None: ...

    def position(self, _partition: Any) -> int:
        return 0 if self.messages else 1

    def poll(self, **_: Any) -> dict[Any, list[Received]]:
        taken, self.messages = self.messages, []
        polled: dict[Any, list[Received]] = {}
        for message in taken:
            polled.setdefault(TopicPartition(message.topic, message.partition), []).append(message)
        return polled


SPECS = (
    Case("bytes that are no record", "not a record", value=b"{"),
    Case("a record of another topic", "no place among the specs", "misdirected", value=codec.encode(BEAT)),
    Case("a newer version", "version 9", "newer", value=_changed(SPEC, v=9)),
    Case("a job whose name is none", "$.job", value=_changed(SPEC, job="a\nb")),
    Case("JSON nested 100,000 deep", "too deeply", value=b'{"record":"spec","v":1,"x":' + b"[" * 100_000),
)


@pytest.fixture
def census(monkeypatch: pytest.MonkeyPatch, settings: Settings, producer: Producer) -> tuple[Any, Reporter]:
    assert producer.sent == []
    reporter = Reporter(settings)

    def read(*messages: Received) -> CensusReader:
        monkeypatch.setattr(reader, "plain_consumer", lambda *_, **__: Consumer(list(messages)))
        made = CensusReader(
            settings,
            lambda message, error: reporter.dead(received(message), error),
            SIGNER.verifier().accepts,
        )
        made.start()
        made.catch_up(dict.fromkeys(made.partitions, 1), 10)
        made.stop()
        made.join()
        assert made.failure is None
        return made

    return read, reporter


@pytest.mark.parametrize("case", SPECS, ids=ids(SPECS))
def test_a_bad_spec_is_set_aside_and_the_good_one_behind_it_is_known(
    case: Case, census: tuple[Any, Reporter], producer: Producer
) -> None:
    read, reporter = census
    assert isinstance(case.value, bytes)
    bad = Received(case.value, topic="midwatch.specs")
    good = Received(codec.encode(SPEC), topic="midwatch.specs")
    known = read(bad, good)
    assert_refused(_told(reporter, producer), case)
    assert known.spec(spec_hash(SPEC)) == SPEC


def test_only_a_signed_spec_takes_the_place_of_another(census: tuple[Any, Reporter]) -> None:
    """Kafka keeps the last spec of a job alone. A command may still name the one before."""
    read, _ = census
    replaced = replace(SPEC, environment={"NCCL_DEBUG": "INFO"})
    new = SIGNER.sign(
        replace(SPEC, environment_file="/state/environments/a.env", replaces=spec_hash(replaced))
    )
    forged = replace(new, armed=not new.armed)
    for record, found in ((new, new), (forged, None)):
        known = read(Received(codec.encode(record), topic="midwatch.specs"))
        assert known.spec(spec_hash(replaced)) == found


def test_a_removed_spec_is_no_mistake(census: tuple[Any, Reporter], producer: Producer) -> None:
    read, _ = census
    read(Received(None, topic="midwatch.specs"))
    assert producer.sent == []


@pytest.mark.parametrize(
    ("value", "key"),
    [
        (b'{"record":"beat","v":1,"x":' + b"[" * 100_000, KEY),
        (codec.encode(BEAT), OTHER.encode()),
        (_changed(BEAT, origin={"job": "a\nb", "incarnation": "local:9:9"}), b"a\nb"),
        (b"\xff", b"\xff"),
        (_changed(BEAT, sequence=-7), KEY),
    ],
    ids=["nested too deeply", "another job's key", "a job whose name is none", "no text", "out of bounds"],
)
def test_what_detect_refuses_on_events_tells_the_executor_of_no_start(
    value: bytes, key: bytes, census: tuple[Any, Reporter]
) -> None:
    read, _ = census
    good = replace(BEAT, origin=replace(BEAT.origin, incarnation="local:2:2"))
    known = read(
        Received(value, key, "midwatch.events", 0), Received(codec.encode(good), KEY, "midwatch.events", 0)
    )
    assert known.incarnations(JOB) == ("local:2:2",)
    assert known.incarnations(OTHER) == ()
