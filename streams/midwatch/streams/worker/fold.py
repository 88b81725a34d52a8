"""The pure core of a stateful agent: state and one record in, changes and sends out.

The shell (`stateful.py`) owns Kafka and Redis; a `Fold` owns the meaning of the records. Everything here
is a value. A fold must be deterministic: after a rollback the shell folds the same record again. The fold
must then give the same sends with the same content, because the id of a send is made from the offset.
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
"""The key of the state of a partition as a whole; the shell loads it for every record."""

Fields = Mapping[bytes, bytes]
"""The state under one key: named fields. The shell writes only the changed ones."""

SEND_LIMIT = 900_000
"""Most bytes of one outgoing record. Kafka's clients refuse a record a little above it (1,000,000)."""
DEAD_VALUE_LIMIT = 256 * 1024
"""Most bytes of an unreadable value in a dead letter; the rest is cut off."""
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
    """One outgoing record. Without `partition` the key chooses the partition."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()
    partition: int | None = None


@dataclass(frozen=True, slots=True)
class Applied:
    """The result of one record: changed fields by key (None deletes a field), and sends in order.

    A fold may change only PARTITION and the keys that `Fold.keys` named. A key without fields is gone.
    """

    changed: Mapping[bytes, Mapping[bytes, bytes | None]] = field(default_factory=dict)
    sends: tuple[Send, ...] = ()


class Fold(Protocol):
    """The pure core of one stateful agent. No method may read a clock, a file or a random number."""

    def keys(self, partition: Fields, message: Message) -> Collection[bytes]:
        """The state keys that `apply` needs for this record: its job, and each job with a due timer.

        The partition's state says which timers are due at `message.now_ms`. PARTITION is always loaded and
        need not be named.
        """
        ...

    def apply(self, states: Mapping[bytes, Fields], message: Message) -> Applied:
        """Fold one record, after the timers that are due.

        `states` holds PARTITION and every key named by `keys`; an unknown key is an empty mapping. Raise
        `ContentMissing` to ask for content by hash: the shell fetches it and calls again. Raise `NewerRecord`
        to stop the partition before this record. Any other exception dead-letters it and calls `on_poison`.
        """
        ...

    def on_poison(self, states: Mapping[bytes, Fields], message: Message, error: Exception) -> Applied:
        """Put the job of a record on hold whose `apply` (or `keys`) raised.

        The trap: a due timer that raised is still due, and would poison every later record of the partition.
        Clear it here. If `keys` raised, only PARTITION is in `states`. If this raises too, the record is
        dead-lettered and no state changes.
        """
        ...

    def next_deadline(self, partition: Fields) -> int | None:
        """The time of the partition's earliest timer, in the time of `now_ms`; None without a timer."""
        ...

    def tick_value(self) -> bytes:
        """The value of a tick record. Only its append time counts."""
        ...


class ContentMissing(MidwatchError):
    """A fold needs content, by its hash, that this process has not read yet.

    Nothing of the record is folded yet. The shell fetches the content and folds the record again. The result
    stays deterministic, because content under a hash never changes.
    """

    def __init__(self, content: str) -> None:
        super().__init__(
            f"the bundle {content} has not been read yet",
            remedy="The worker reads it from the topic of rules.",
        )
        self.content = content


class RecordTooLarge(MidwatchError):
    """An outgoing record is too large: Kafka would refuse it for ever."""

    refusal = "too_large"


def check_size(sends: Iterable[Send]) -> None:
    """Raises RecordTooLarge, so that the input is dead-lettered and does not crash the worker for ever."""
    for send in sends:
        size = len(send.value or b"") + len(send.key or b"") + sum(len(v) for _, v in send.headers)
        if size > SEND_LIMIT:
            raise RecordTooLarge(f"{size} bytes for {send.topic}, the limit is {SEND_LIMIT}")


def dead_letter(topic: str, message: Message, refused: Refusal) -> Send:
    """The send that writes an unreadable or failed record, with the reason, to the dead-letter topic.

    Its key is the source, `topic/partition/offset`. Value and key of the record are cut at their limits.
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
