"""Two partitions in memory, folded as the workers fold them: what an export would read, and what was said."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from midwatch.agents.decide.decision import Rulebook
from midwatch.agents.decide.fold import DecideFold
from midwatch.agents.detect.fold import DetectFold
from midwatch.agents.policies.loader import load_policy, shipped_policies
from midwatch.agents.replay.recording.recording_file import (
    VERSION,
    WITHOUT_RULES,
    Head,
    Recording,
    RecordingSource,
)
from midwatch.agents.replay.recording.thinning import thinned
from midwatch.agents.rulesets.content import Content, bundle_hash, content
from midwatch.rules.detectors.limits import WatchLimits
from midwatch.streams.records import Activation, Decision, RuleBundle, codec
from midwatch.streams.worker.fold import PARTITION, Fields, Fold, Message, Send
from midwatch.streams.worker.tables import ids
from midwatch.streams.worker.tables.batch import OWN, Batch

LIMITS = WatchLimits(training=60.0, evaluation=600.0, startup=300.0)
EVENTS, INCIDENTS = RecordingSource("mw.events", 3), RecordingSource("mw.incidents", 5)


def book(policy: str = "verdict") -> Rulebook:
    policies = {name: load_policy(name) for name in shipped_policies()}
    return Rulebook(policies, lambda command: command, policy, acting=True)


@dataclass
class Partition:
    """One partition and the worker that folds it."""

    source: RecordingSource
    fold: Fold
    marked: bool = False
    log: list[Message] = field(default_factory=list)
    states: dict[bytes, Fields] = field(default_factory=lambda: {PARTITION: {}, OWN: {}})

    def append(
        self, key: bytes | None, value: bytes, at_ms: int, headers: tuple[tuple[str, bytes], ...] = ()
    ) -> list[tuple[ids.EntryId, Send]]:
        offset = len(self.log)
        message = Message(self.source.topic, self.source.partition, offset, at_ms, at_ms, key, value, headers)
        self.log.append(message)
        batch = Batch(self.fold, self.states, offset - 1, "dead", marked=self.marked)
        message = replace(message, now_ms=batch.now_ms(at_ms))
        for missing in batch.missing(message):
            batch.states[missing] = {}
        assert batch.apply(message), batch.stopped
        return batch.outgoing


class Stream:
    """Detect and decide behind each other; `lag_ms` passes between an event and what follows from it."""

    def __init__(self, lag_ms: int = 7) -> None:
        self.lag_ms = lag_ms
        self.contents: dict[str, Content] = {}
        self.bundles: dict[str, RuleBundle] = {}
        detect = DetectFold(LIMITS, "incidents", lambda _: EVENTS.partition, self.contents)
        decide = DecideFold(book(), "decisions", "commands", self.contents)
        self.events = Partition(EVENTS, detect)
        self.incidents = Partition(INCIDENTS, decide, marked=True)
        self.decisions: list[Decision] = []

    def say(self, record: object, at_ms: int, job: str | None) -> None:
        key = None if job is None else job.encode()
        value = record if isinstance(record, bytes) else codec.encode(record)
        for entry, send in self.events.append(key, value, at_ms):
            if send.topic == EVENTS.topic:
                self.say(send.value, at_ms, (send.key or b"").decode())
            elif send.topic == "incidents":
                name = ids.format_id(EVENTS.topic, EVENTS.partition, entry)
                self.tell(send.key, send.value or b"", at_ms + self.lag_ms, ((ids.HEADER, name),))

    def tell(
        self, key: bytes | None, value: bytes, at_ms: int, headers: tuple[tuple[str, bytes], ...] = ()
    ) -> None:
        """One record of `incidents`."""
        for _, send in self.incidents.append(key, value, at_ms, headers):
            made = codec.decode(send.value or b"")
            if isinstance(made, Decision):
                self.decisions.append(made)

    def publish(self, record: RuleBundle) -> str:
        """A bundle, as it stands in the topic of rules; its hash."""
        hash_ = bundle_hash(record)
        self.bundles[hash_], self.contents[hash_] = record, content(hash_, record)
        return hash_

    def activate(self, hash_: str, offset: int, at_ms: int) -> None:
        """From here on both partitions are judged by it."""
        said = Activation(hash_, offset)
        self.say(said, at_ms, None)
        self.tell(None, codec.encode(said), at_ms)

    def recording(self, job: str) -> Recording:
        """What an export of the job holds."""
        key = job.encode()
        return Recording(
            Head(job, EVENTS, INCIDENTS, acting=True, recording=VERSION if self.bundles else WITHOUT_RULES),
            tuple(thinned(self.events.log, key)),
            tuple(thinned(self.incidents.log, key)),
            tuple(
                Message("rules", 0, offset, 0, 0, hash_.encode(), codec.encode(record))
                for offset, (hash_, record) in enumerate(self.bundles.items())
            ),
        )

    def incidents_of(self, job: str) -> list[object]:
        """What the topic `incidents` holds of the job, each record once."""
        seen: dict[bytes, object] = {}
        for message in self.incidents.log:
            if message.key == job.encode():
                seen.setdefault(dict(message.headers)[ids.HEADER], codec.decode(message.value or b""))
        return list(seen.values())

    def decisions_of(self, job: str) -> list[Decision]:
        return [decision for decision in self.decisions if decision.job == job]
