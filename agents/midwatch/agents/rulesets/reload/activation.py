"""The bundle that judges a partition, as a part of the partition's state. Pure.

An activation counts if it names a later `current` than the one before. Any other changes nothing, so it may
be written twice. The owner repeats it daily, because a fold may begin in the middle of the log.
"""

from __future__ import annotations

from midwatch.streams.records import Activation
from midwatch.streams.worker.fold import Fields

_HASH = b"bundle"
_OFFSET = b"bundle_offset"
_AT = b"bundle_at"
_EVERY_MS = 86_400_000


def bundle_in(partition: Fields) -> str:
    """The hash of the bundle that judges the partition; "" before the first activation."""
    return partition[_HASH].decode() if _OFFSET in partition else ""


def activated(partition: Fields, activation: Activation, now_ms: int) -> dict[bytes, bytes]:
    """The fields of the partition's state that the activation changes."""
    known = int(partition.get(_OFFSET, b"-1"))
    if activation.current_offset < known:
        return {}
    if activation.current_offset == known and activation.bundle.encode() != partition[_HASH]:
        return {}
    return {
        _HASH: activation.bundle.encode(),
        _OFFSET: b"%d" % activation.current_offset,
        _AT: b"%d" % now_ms,
    }


def is_due(partition: Fields, current_offset: int, now_ms: int) -> bool:
    """Whether the owner must write an activation for the `current` at that offset."""
    known = int(partition.get(_OFFSET, b"-1"))
    if current_offset != known:
        return current_offset > known
    return now_ms - int(partition.get(_AT, b"0")) >= _EVERY_MS
