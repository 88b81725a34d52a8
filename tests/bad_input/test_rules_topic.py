"""`rules`, through a worker's own reading: what cannot be read leaves the bundle before it in force."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest
from kafka import TopicPartition

from bad_input.case import AT_MS, Case, Outcome, assert_refused, ids
from bad_input.test_orders import BEAT, Producer, Received
from midwatch.agents import reporter as report
from midwatch.agents.match import worker as match
from midwatch.agents.rulesets.content import bundle_hash
from midwatch.agents.rulesets.reload import topic
from midwatch.agents.rulesets.reload.follower import Follower
from midwatch.agents.rulesets.reload.topic import CurrentBundle
from midwatch.streams.records import CURRENT, REFUSED, InForce, RefusedRules, RuleBundle, codec
from midwatch.streams.settings.schema import KafkaSettings, Settings
from midwatch.streams.worker.counters import Counters
from midwatch.streams.worker.fold import Send
from processes import wait_for

BUNDLE = RuleBundle(())
HASH = bundle_hash(BUNDLE)
SETTINGS = Settings(kafka=KafkaSettings(bootstrap=("localhost:9",)))
GOOD = InForce(HASH, "push", "ada@here", AT_MS)


def _changed(made: object, **fields: Any) -> bytes:
    return json.dumps(json.loads(codec.encode(made)) | fields).encode()


STAYS = "set aside in `dead`; the bundle before it stays in force"
CASES = (
    Case("bytes that are no record", "not a record", goes=STAYS, value=b"\x00\xff"),
    Case("JSON nested 100,000 deep", "too deeply", goes=STAYS,
         value=b'{"record":"in_force","v":1,"x":' + b"[" * 100_000),
    Case("a newer version", "version 9", "newer", goes=STAYS, value=_changed(GOOD, v=9)),
    Case("a record of another topic", "no place under 'current'", "misdirected", goes=STAYS,
         value=codec.encode(BEAT)),
    Case("a refusal in the place of what is in force", "no place under 'current'", "misdirected", goes=STAYS,
         value=codec.encode(RefusedRules("push", "ada@here", AT_MS, ("x",)))),
    Case("a bundle in the place of what was refused", "no place under 'refused'", "misdirected", goes=STAYS,
         value=codec.encode(GOOD), key=REFUSED),
    Case("a time beyond any calendar", "$.at_ms", goes=STAYS, value=_changed(GOOD, at_ms=10**30)),
)  # fmt: skip


@dataclass
class Log:
    """Kafka's side of a reader: one partition, from its beginning."""

    messages: list[Received]
    at: int = 0

    def assign(self, partitions: list[TopicPartition]) -> None:
        self.partitions = partitions

    def seek_to_beginning(self, *_partitions: TopicPartition) -> None:
        self.at = 0

    def seek(self, _partition: TopicPartition, offset: int) -> None:
        self.at = offset

    def position(self, _partition: TopicPartition) -> int:
        return self.at

    def end_offsets(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, len(self.messages))

    def poll(self, timeout_ms: int) -> dict[TopicPartition, list[Received]]:
        came, self.at = self.messages[self.at :], len(self.messages)
        if not came:
            threading.Event().wait(timeout_ms / 10_000)  # nothing comes
        return {self.partitions[0]: came} if came else {}

    def close(self) -> None:
        """Nothing is held."""


class ClosedProducer(Producer):
    """As the other doors' one."""

    def close(self, timeout: float) -> None:
        assert timeout == 0, "nothing is held, and nobody waits"


@dataclass
class Read:
    """What a worker made of a topic: the bundle in force, what it counted and said, and the dead letters."""

    current: CurrentBundle
    counters: Counters
    said: list[str]
    sent: list[Send]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Callable[..., Read]:
    """Reads records of key and value behind the good bundle, and then that this bundle is in force again."""

    def made(*bad: tuple[bytes, bytes]) -> Read:
        good = [(HASH.encode(), codec.encode(BUNDLE)), (CURRENT, codec.encode(GOOD))]
        values = [*good, *bad, (CURRENT, codec.encode(replace(GOOD, who="bob@here")))]
        log = Log([Received(value, key, "midwatch.rules", 0, n) for n, (key, value) in enumerate(values)])
        producer, counters = ClosedProducer(), Counters()
        monkeypatch.setattr(topic, "plain_consumer", lambda *_, **__: log)
        monkeypatch.setattr(report, "KafkaProducer", lambda **_: producer)
        caplog.set_level(logging.ERROR)
        follower = Follower(SETTINGS, counters, dead_letter=partial(match.write_dead_letter, SETTINGS))
        follower.start()
        try:
            wait_for(lambda: follower.current is not None, "a bundle is in force", 30)
        finally:
            follower.stop()
        assert follower.current is not None
        return Read(follower.current, counters, [r.getMessage() for r in caplog.records], producer.sent)

    return made


@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_what_names_no_bundle_is_set_aside_and_the_next_one_is_in_force(
    case: Case, read: Callable[..., Read]
) -> None:
    found = read((case.key or CURRENT, case.value))
    assert (found.current.in_force.who, found.current.offset) == ("bob@here", 3)
    outcome = Outcome().sort(found.sent, SETTINGS.topic_names.dead)
    outcome.counted = {kind: count for (_, kind), count in found.counters.refused.items()}
    assert_refused(outcome, case)
    assert outcome.letters[0].offset == 2
    (said,) = found.said
    assert case.said in said
    assert "midwatch.rules/0/2 cannot be read" in said
