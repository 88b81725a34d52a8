"""The commit script: its arguments from a partition's write, and its answers as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib.resources import files

from midwatch.streams.worker.tables import keys
from midwatch.streams.worker.tables.ids import EntryId, format_entry

SOURCE = files(__package__).joinpath("commit.lua").read_bytes()
NOTHING = -1
"""The offset of a partition that has no state yet."""


@dataclass(frozen=True, slots=True)
class Write:
    """One partition's batch, from the state at `expected` to the state at `offset` (both inclusive)."""

    expected: int
    offset: int
    changed: Mapping[bytes, Mapping[bytes, bytes | None]]
    outbox: Sequence[tuple[EntryId, bytes]]


class ScriptAnswer(Enum):
    """The script's answer. FENCED: another worker wrote this partition after we read it."""

    WRITTEN = "OK"
    ALREADY_WRITTEN = "DUP"
    FENCED = "FENCED"


def arguments(
    group: str, topic: str, partition: int, write: Write, nonce: bytes
) -> tuple[list[bytes], list[bytes]]:
    """KEYS and ARGV of the script, in the order that its first lines give."""
    changed = {key: fields for key, fields in write.changed.items() if fields}
    names = [keys.offset_key(group, topic, partition), keys.outbox_key(group, topic, partition)]
    values: list[bytes] = [b"%d" % write.expected, b"%d" % write.offset, nonce]
    for key, fields in changed.items():
        names.append(keys.state_key(group, topic, partition, key))
        written = [(name, value) for name, value in fields.items() if value is not None]
        deleted = [name for name, value in fields.items() if value is None]
        values += (b"%d" % len(written), b"%d" % len(deleted))
        for name, value in written:
            values += (name, value)
        values += deleted
    for entry, blob in write.outbox:
        values += (format_entry(entry), blob)
    return names, values


def parse_offset(stored: bytes | None) -> tuple[int, bytes]:
    """(offset, nonce) from the value of the offset key; NOTHING without one."""
    if stored is None:
        return NOTHING, b""
    offset, _, nonce = stored.partition(b" ")
    return int(offset), nonce
