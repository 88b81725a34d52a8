"""Decide as a fold of the topic `incidents`: bytes of Redis fields and records in, bytes out. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from midwatch.agents.decide.decision import Rulebook, decide
from midwatch.agents.decide.state import DecideState
from midwatch.agents.rulesets.content import Content
from midwatch.agents.rulesets.reload.activation import activated, bundle_in
from midwatch.streams.errors import MalformedRecord, MisdirectedRecord
from midwatch.streams.records import (
    Activation,
    Decision,
    Finding,
    Forwarded,
    Incident,
    IncidentRecord,
    Tick,
    codec,
)
from midwatch.streams.records.identity import is_job
from midwatch.streams.worker.fold import PARTITION, Applied, ContentMissing, Fields, Message, Send
from midwatch.streams.worker.refusals import refusal

_DECIDE = b"decide"


@dataclass(frozen=True, slots=True)
class DecideFold:
    """The pure core of decide."""

    book: Rulebook
    decisions: str
    commands: str
    contents: Mapping[str, Content] = field(default_factory=dict)
    """Bundles by their hash; the shell adds the one that `apply` misses."""

    def keys(self, partition: Fields, message: Message) -> Collection[bytes]:  # noqa: ARG002  # no timers here
        """The key of the job whose state the record needs; none for a record without a key."""
        return () if message.key is None else (message.key,)

    def apply(self, states: Mapping[bytes, Fields], message: Message) -> Applied:
        """Folds one record into the state of its job.

        Sends what the messages need of the record, then the decisions, then at most one command.
        """
        if message.value is None:
            raise MalformedRecord("a record without a value", where="incidents")
        record = codec.decode(message.value)
        if message.key is None:
            if not isinstance(record, Activation | Tick):
                raise MalformedRecord(f"a {type(record).__name__} without a job", where="incidents")
            return self._keyless(states[PARTITION], record, message.now_ms)
        _check(record, message.key)
        book = self._book(states[PARTITION])
        old = state_of(states.get(message.key, {}))
        turn = decide(old, record, message.now_ms, book)
        sends = [Send(self.decisions, message.key, codec.encode(f)) for f in _forwarded(record)]
        sends += [Send(self.decisions, message.key, codec.encode(d)) for d in turn.decisions]
        sends += [Send(self.commands, message.key, codec.encode(c)) for c in turn.commands]
        if turn.state == old:
            return Applied({}, tuple(sends))
        return Applied({message.key: {_DECIDE: codec.state_to_bytes(turn.state)}}, tuple(sends))

    def _keyless(self, partition: Fields, record: Activation | Tick, now_ms: int) -> Applied:
        if isinstance(record, Tick):
            return Applied()
        changed = activated(partition, record, now_ms)
        self._book({**partition, **changed})
        return Applied({PARTITION: changed})

    def _book(self, partition: Fields) -> Rulebook:
        """The policies in force; those of the bundle replace those of the settings by name.

        Raises:
            ContentMissing: the shell has not loaded the bundle yet.
        """
        bundle = bundle_in(partition)
        if not bundle:
            return self.book
        if bundle not in self.contents:
            raise ContentMissing(bundle)
        content = self.contents[bundle]
        policies = {**self.book.policies, **content.policies}
        return replace(self.book, policies=policies, judges=content.judges)

    def on_poison(self, states: Mapping[bytes, Fields], message: Message, error: Exception) -> Applied:
        """Holds the job from here on until a person arms it, and writes one decision that says so.

        A record that is another job's holds nobody: otherwise one job could stop another.
        """
        if message.key is None or not is_job(message.key) or isinstance(error, MisdirectedRecord):
            return Applied()
        old = state_of(states.get(message.key, {}))
        reason = refusal(error).reason
        held = replace(old, job=message.key.decode(), poisoned=old.poisoned or reason)
        sends = () if old.poisoned else (self._hold(held, message),)
        return Applied({message.key: {_DECIDE: codec.state_to_bytes(held)}}, sends)

    def _hold(self, held: DecideState, message: Message) -> Send:
        place = f"{message.topic}/{message.partition}/{message.offset}"
        decision = Decision(
            job=held.job,
            attempt=held.last.attempt if held.last else 0,
            incident="",
            revision=0,
            action="hold",
            policy=held.spec.policy if held.spec and held.spec.policy else self.book.default_policy,
            reason=f"a record of this job could not be read ({place}, dead-lettered): {held.poisoned}; "
            "look at it, then lift the hold with `midwatch arm`",
            at_ms=message.now_ms,
            armed=False,
        )
        return Send(self.decisions, held.job.encode(), codec.encode(decision))

    def next_deadline(self, partition: Fields) -> int | None:  # noqa: ARG002  # decide has no timers
        """None: decide has no timers."""
        return None

    def tick_value(self) -> bytes:
        """A tick for the worker's interface; decide never writes one."""
        return codec.encode(Tick(due_ms=0))


def _check(record: IncidentRecord, key: bytes) -> None:
    job = getattr(record.record if isinstance(record, Forwarded) else record, "job", None)
    if job is None or job.encode() != key:
        raise MisdirectedRecord(f"a record of {job!r} under the key {key[:300]!r}", where="incidents")


def _forwarded(record: IncidentRecord) -> tuple[Forwarded, ...]:
    """What the messages to people need beside the decisions, so that they have one input."""
    match record:
        case Incident() if record.state == "settled":
            return (Forwarded(record),)
        case Finding():
            return (Forwarded(record),)
        case Forwarded():
            return (record,)
    return ()


def state_of(fields: Fields) -> DecideState:
    """The state of a job in these fields."""
    return codec.state_from_bytes(fields[_DECIDE], DecideState) if _DECIDE in fields else DecideState()
