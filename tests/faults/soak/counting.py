"""The folds of the soak: each counts the records of a key and chains a checksum over their values.

The chain makes order and content count, not only number: a record lost, doubled, or swapped with another
of its key gives another checksum, and whoever knows what was sent can compute the right one.
"""

# ruff: noqa: ARG002 (a Fold is given more than a counter needs)

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from midwatch.streams.worker.fold import Applied, Fields, Message, Send


def chained(checksum: int, value: bytes) -> int:
    return zlib.crc32(value, checksum)


@dataclass(frozen=True)
class CountingFold:
    """Counts; with `sends_to` it also sends one record per input, whose value is the count and the input."""

    sends_to: str | None = None

    def keys(self, partition: Fields, message: Message) -> Collection[bytes]:
        return (message.key or b"",)

    def apply(self, states: Mapping[bytes, Fields], message: Message) -> Applied:
        key, value = message.key or b"", message.value or b""
        state = states[key]
        count = int(state.get(b"count", b"0")) + 1
        checksum = chained(int(state.get(b"checksum", b"0")), value)
        changed = {key: {b"count": b"%d" % count, b"checksum": b"%d" % checksum}}
        if self.sends_to is None:
            return Applied(changed)
        return Applied(changed, (Send(self.sends_to, key, b"%d %s" % (count, value)),))

    def on_poison(self, states: Mapping[bytes, Fields], message: Message, error: Exception) -> Applied:
        raise error

    def next_deadline(self, partition: Fields) -> int | None:
        return None

    def tick_value(self) -> bytes:
        return b""
