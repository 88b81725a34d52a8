"""Decide as a fold of the topic `incidents`: bytes of Redis fields and records in, bytes out. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from midwatch.agents.decision import DecideState, Rulebook, decide
from midwatch.streams import codec
from midwatch.streams.errors import MalformedRecord
from midwatch.streams.fold import Applied, Fields, Message, Send
from midwatch.streams.records import Activation, Tick

_DECIDE = b"decide"


@dataclass(frozen=True, slots=True)
class DecideFold:
    """The pure core of decide."""

    book: Rulebook
    decisions: str
    commands: str

    def keys(self, partition: Fields, message: Message) -> Collection[bytes]:  # noqa: ARG002  # no timers here
        """The job of the record."""
        return () if message.key is None else (message.key,)

    def apply(self, states: Mapping[bytes, Fields], message: Message) -> Applied:
        """One record: at most a few decisions and one command."""
        if message.value is None:
            raise MalformedRecord("a record without a value", where="incidents")
        record = codec.decode(message.value)
        if message.key is None:
            if not isinstance(record, Activation | Tick):
                raise MalformedRecord(f"a {type(record).__name__} without a job", where="incidents")
            return Applied()
        old = _read(states.get(message.key, {}))
        turn = decide(old, record, message.now_ms, self.book)
        sends = [Send(self.decisions, message.key, codec.encode(d)) for d in turn.decisions]
        sends += [Send(self.commands, message.key, codec.encode(c)) for c in turn.commands]
        if turn.state == old:
            return Applied({}, tuple(sends))
        return Applied({message.key: {_DECIDE: codec.state_to_bytes(turn.state)}}, tuple(sends))

    def on_poison(self, states: Mapping[bytes, Fields], message: Message, error: Exception) -> Applied:
        """From here on nothing is decided for this job without a person."""
        if message.key is None:
            return Applied()
        held = replace(_read(states.get(message.key, {})), poisoned=f"{type(error).__name__}: {error}")
        return Applied({message.key: {_DECIDE: codec.state_to_bytes(held)}})

    def next_deadline(self, partition: Fields) -> int | None:  # noqa: ARG002  # decide has no timers
        """Decide waits for nothing."""
        return None

    def tick_value(self) -> bytes:
        """Never written."""
        return codec.encode(Tick(due_ms=0))


def _read(fields: Fields) -> DecideState:
    return codec.state_from_bytes(fields[_DECIDE], DecideState) if _DECIDE in fields else DecideState()
