"""A fold that counts, for tests of the table alone."""

# ruff: noqa: ARG002 (a Fold is given more than a counter needs)

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from midwatch.streams.worker.fold import Applied, Fields, Message, Send


@dataclass(frozen=True)
class Counting:
    sends_to: str | None

    def keys(self, partition: Fields, message: Message) -> Collection[bytes]:
        return (b"job",)

    def apply(self, states: Mapping[bytes, Fields], message: Message) -> Applied:
        count = b"%d" % (int(states[b"job"].get(b"count", b"0")) + 1)
        sends = () if self.sends_to is None else (Send(self.sends_to, b"job", count),)
        return Applied({b"job": {b"count": count}}, sends)

    def on_poison(self, states: Mapping[bytes, Fields], message: Message, error: Exception) -> Applied:
        raise error

    def next_deadline(self, partition: Fields) -> int | None:
        return None

    def tick_value(self) -> bytes:
        return b""


def count_on(sends_to: str | None) -> Counting:
    return Counting(sends_to)


def record(offset: int) -> Message:
    return Message("events", 0, offset, 1000 + offset, 1000 + offset, b"job", b"")
