"""What a stateful agent asks of its pure core: state and one record in, changes and sends out.

The shell (`stateful.py`) owns Kafka and Redis; a `Fold` owns the meaning of the records. Everything here
is a value. A fold must be deterministic: after a rollback the same record is folded again, and whatever
it sent the first time must come out again with the same content, because its id is made from the offset.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from midwatch.streams.errors import MidwatchError
from midwatch.streams.records import DeadLetter
from midwatch.streams.records.codec import encode
from midwatch.streams.worker.refusals import Refusal

PARTITION = b"\0partition"
"""The key of the state that belongs to a partition as a whole; it is loaded for every record."""

Fields = Mapping[bytes, bytes]
"""The state under one key: named fields, of which only the changed ones are written."""

SEND_LIMIT = 900_000
"""Bytes of one outgoing record; Kafka's clients refuse a little above (1,000,000)."""
DEAD_VALUE_LIMIT = 256 * 1024
"""Bytes of an unreadable value that a dead letter keeps; the rest is cut off."""
DEAD_KEY_LIMIT = 1024


@dataclass(frozen=True, slots=True)
class Message:
    """One record of the input topic, as bytes.

    `timestamp_ms` is the broker's append time (milliseconds since 1970). `now_ms` is the highest append
    time seen in this partition, this record included: the only "now" that a fold may use.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    now_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class Send:
    """One record to be written downstream; without `partition` the key chooses it."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()
    partition: int | None = None


@dataclass(frozen=True, slots=True)
class Applied:
    """What one record did: changed fields by key (None deletes a field), and what to send, in order.

    Only keys that were named by `Fold.keys` (and PARTITION) may be changed. A key whose last field is
    deleted is gone.
    """

    changed: Mapping[bytes, Mapping[bytes, bytes | None]] = field(default_factory=dict)
    sends: tuple[Send, ...] = ()


class Fold(Protocol):
    """The pure core of one stateful agent. No method may read a clock, a file or a random number."""

    def keys(self, partition: Fields, message: Message) -> Collection[bytes]:
        """The state keys that `apply` will need for this record: its job, and the jobs whose timers are
        due at `message.now_ms` by the partition's state. PARTITION is always there and need not be named.
        """
        ...

    def apply(self, states: Mapping[bytes, Fields], message: Message) -> Applied:
        """Fold one record. `states` holds PARTITION and every key named by `keys`; an unknown key is an
        empty mapping. Due timers fire in here, before the record.

        Raising `ContentMissing` asks for content by hash and is followed by another call. Raising
        `NewerRecord` stops the partition before this record; any other exception dead-letters it
        and calls `on_poison`.
        """
        ...

    def on_poison(self, states: Mapping[bytes, Fields], message: Message, error: Exception) -> Applied:
        """The record made `apply` (or `keys`) raise: put its job on hold.

        The trap: if a due timer raised, it is still due, and every later record of the partition would
        be poisoned by it. Clear it here. If `keys` raised, only PARTITION is in `states`. If this raises
        too, the record is dead-lettered and no state changes.
        """
        ...

    def next_deadline(self, partition: Fields) -> int | None:
        """When the earliest timer of the partition is due, in the time of `now_ms`; None without one."""
        ...

    def tick_value(self) -> bytes:
        """The value of a tick record. What counts is the append time that it gets."""
        ...


class ContentMissing(MidwatchError):
    """A fold needs content, by its hash, that this process has not read yet.

    The shell fetches it and asks again; nothing of the record was folded. It cannot change what the fold
    says, because what has a hash never changes.
    """

    def __init__(self, content: str) -> None:
        super().__init__(f"the bundle {content} is not at hand", remedy="it is read from the topic of rules")
        self.content = content


class RecordTooLarge(MidwatchError):
    """A record was to be sent that Kafka would refuse for ever."""

    refusal = "too_large"


def check_size(sends: Iterable[Send]) -> None:
    """Raises RecordTooLarge: better the input is set aside than that a worker crashes on it for ever."""
    for send in sends:
        size = len(send.value or b"") + len(send.key or b"") + sum(len(v) for _, v in send.headers)
        if size > SEND_LIMIT:
            raise RecordTooLarge(f"{size} bytes for {send.topic}, the limit is {SEND_LIMIT}")


def dead_letter(topic: str, message: Message, refused: Refusal) -> Send:
    """The record that could not be read or folded, with the reason, for the topic of dead letters.

    The key is the source, `topic/partition/offset`. Value and key are cut at their limits.
    """
    letter = DeadLetter(
        topic=message.topic,
        partition=message.partition,
        offset=message.offset,
        reason=refused.reason,
        value=(message.value or b"")[:DEAD_VALUE_LIMIT],
        key=None if message.key is None else message.key[:DEAD_KEY_LIMIT],
        kind=refused.kind,
    )
    source = f"{message.topic}/{message.partition}/{message.offset}".encode()
    return Send(topic=topic, key=source, value=encode(letter))
