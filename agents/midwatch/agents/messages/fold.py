"""The messages as a fold of the topic `decisions`: bytes of Redis fields and records in, bytes out. Pure.

A job's state is one field. The partition's state has one field `due:<job>` for each job with a timer. What is
to be told is a send to a channel instead of a topic, so the state and the outbox change in one script.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from midwatch.agents.messages.alarms import Pace
from midwatch.agents.messages.notice import Notice
from midwatch.agents.messages.routing import CHANNEL, Route, routed
from midwatch.agents.messages.telling import TellingState, Told, tell, tell_due
from midwatch.streams.errors import MalformedRecord, MisdirectedRecord
from midwatch.streams.records import Decision, Forwarded, Tick, codec
from midwatch.streams.worker.fold import PARTITION, Applied, Fields, Message, Send

_STATE = b"messages"
_DUE = b"due:"


@dataclass(frozen=True, slots=True)
class MessagesFold:
    """The pure core of the messages."""

    routes: Sequence[Route]
    pace: Pace = field(default_factory=Pace)

    def keys(self, partition: Fields, message: Message) -> Collection[bytes]:
        """The job of the record, and every job whose timer is due."""
        return {*_due(partition, message.now_ms), *(() if message.key is None else (message.key,))}

    def apply(self, states: Mapping[bytes, Fields], message: Message) -> Applied:
        """Tell what is due, then fold the record."""
        record = _read(message)
        changed: dict[bytes, dict[bytes, bytes | None]] = {}
        sends: list[Send] = []

        def take(job: bytes, old: TellingState, outcome: Told) -> None:
            sends.extend(self._sends(job, outcome.notices))
            if outcome.state == old:
                return
            changed.setdefault(job, {})[_STATE] = codec.state_to_bytes(outcome.state)
            due_ms = outcome.state.due_ms()
            changed.setdefault(PARTITION, {})[_DUE + job] = None if due_ms is None else b"%d" % due_ms

        known = {job: _state(states.get(job, {})) for job in states if job != PARTITION}
        for job in _due(states[PARTITION], message.now_ms):
            outcome = tell_due(known[job], message.now_ms, self.pace)
            take(job, known[job], outcome)
            known[job] = outcome.state
        if message.key is not None and record is not None:
            old = known[message.key]
            take(message.key, old, tell(old, record, message.now_ms, self.pace))
        return Applied(changed, tuple(sends))

    def _sends(self, job: bytes, notices: Sequence[Notice]) -> list[Send]:
        return [
            Send(CHANNEL + channel, job, codec.state_to_bytes(notice))
            for notice in notices
            for channel in routed(notice, self.routes)
        ]

    def on_poison(self, states: Mapping[bytes, Fields], message: Message, error: Exception) -> Applied:  # noqa: ARG002  # the shell's interface
        """Drop the timers that are due, since one of them may have raised. The record is dead-lettered."""
        return Applied({PARTITION: {_DUE + job: None for job in _due(states[PARTITION], message.now_ms)}})

    def next_deadline(self, partition: Fields) -> int | None:
        """The earliest timer of the partition."""
        return min((int(due) for name, due in partition.items() if name.startswith(_DUE)), default=None)

    def tick_value(self) -> bytes:
        """A tick: only its time counts."""
        return codec.encode(Tick(due_ms=0))


def notice_of(send: Send) -> Notice:
    """The notice in a send to a channel."""
    return codec.state_from_bytes(send.value or b"", Notice)


def _read(message: Message) -> Decision | Forwarded | None:
    """The record of a job; None for one that says nothing to people, such as a tick.

    Raises:
        MalformedRecord: no record, or one of a job without its key.
        MisdirectedRecord: the key is another job's.
    """
    if message.value is None:
        raise MalformedRecord("a record without a value", where="decisions")
    record = codec.decode(message.value)
    if not isinstance(record, Decision | Forwarded):
        return None
    job = (record.record if isinstance(record, Forwarded) else record).job
    if message.key is None or job.encode() != message.key:
        raise MisdirectedRecord(f"a record of {job!r} under the key {message.key!r}", where="decisions")
    return record


def _due(partition: Fields, now_ms: int) -> list[bytes]:
    dues = (
        (int(due), name[len(_DUE) :])
        for name, due in partition.items()
        if name.startswith(_DUE) and int(due) <= now_ms
    )
    return [job for _, job in sorted(dues)]


def _state(fields: Fields) -> TellingState:
    return codec.state_from_bytes(fields[_STATE], TellingState) if _STATE in fields else TellingState()
