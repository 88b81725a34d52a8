"""Fold the records of one partition in memory: no Kafka, no Redis, no clock.

The shell passes records in order, loads the state that a record needs, and takes one `Write` at the end.
Nothing outside changes before the script accepts the write, so a failed batch leaves no trace.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from midwatch.streams.errors import NewerRecord
from midwatch.streams.worker.fold import (
    PARTITION,
    Applied,
    ContentMissing,
    Fields,
    Fold,
    Message,
    Send,
    check_size,
    dead_letter,
)
from midwatch.streams.worker.refusals import refusal
from midwatch.streams.worker.tables import ids, wire
from midwatch.streams.worker.tables.script import Write

OWN = b"\0shell"
"""The key of the shell's state of a partition: highest append time and high-water marks."""
NOW = b"now"
MARK = b"hw:"


@dataclass(slots=True)
class Tally:
    """Counts of the records of a batch."""

    applied: int = 0
    below_mark: int = 0
    refused: list[str] = field(default_factory=list)
    """The kind of refusal of each dead-lettered record."""
    muted: int = 0

    @property
    def poisoned(self) -> int:
        """The number of dead-lettered records."""
        return len(self.refused)


@dataclass(slots=True)
class Batch:
    """Records of one partition, folded onto a copy of its state.

    `states` must hold PARTITION and OWN; the shell adds the keys that `missing` names. Sends of inputs below
    `mute_below` were published before Redis lost them; the batch leaves them out. `marked`: a record with an
    id is folded only above the high-water mark of its source. `stopped` says why the batch takes no further
    record.
    """

    fold: Fold
    states: dict[bytes, Fields]
    expected: int
    dead_topic: str
    mute_below: int = 0
    marked: bool = False
    stopped: str = ""
    tally: Tally = field(default_factory=Tally)
    poisons: list[str] = field(default_factory=list)
    outgoing: list[tuple[ids.EntryId, Send]] = field(default_factory=list)
    _offset: int | None = None
    _needed: Collection[bytes] | Exception = ()
    _dirty: dict[bytes, dict[bytes, bytes | None]] = field(default_factory=dict)
    _copies: dict[bytes, dict[bytes, bytes]] = field(default_factory=dict)

    def now_ms(self, timestamp_ms: int) -> int:
        """The highest append time (ms) of the partition when a record with this append time is applied."""
        known = self.states[OWN].get(NOW)
        return max(timestamp_ms, int(known)) if known else timestamp_ms

    def missing(self, message: Message) -> set[bytes]:
        """The keys that the shell must put into `states` before `apply` of the same record."""
        try:
            self._needed = self.fold.keys(self.states[PARTITION], message)
        except Exception as error:
            self._needed = error
            return set()
        return {key for key in self._needed if key not in self.states}

    def apply(self, message: Message) -> bool:
        """Fold one record; False if it stops the partition, and then the batch takes no further record.

        Raises ContentMissing, and changes nothing, while the fold lacks content.
        """
        shell_fields: dict[bytes, bytes | None] = {}
        if self.states[OWN].get(NOW) != (now := b"%d" % message.now_ms):
            shell_fields[NOW] = now
        # The fold sees only the keys that it named: other loaded keys depend on where batches were cut.
        named = () if isinstance(self._needed, Exception) else self._needed
        view = {key: self.states[key] for key in (PARTITION, *named)}
        try:
            if self._is_old(message, shell_fields):
                self.tally.below_mark += 1
                applied = Applied()
            else:
                if isinstance(self._needed, Exception):
                    raise self._needed
                applied = _checked(self.fold.apply(view, message), view)
                self.tally.applied += 1
        except ContentMissing:
            raise
        except NewerRecord as error:
            self.stopped = str(error)
            return False
        except Exception as error:
            applied = self._poison(view, message, error)
        self._take(message, applied)
        self._change(OWN, shell_fields)
        return True

    def write(self) -> Write | None:
        """The whole batch as one write, or None if no record was taken."""
        if self._offset is None:
            return None
        outbox = [(entry, wire.pack(send)) for entry, send in self.outgoing]
        return Write(self.expected, self._offset, self._dirty, outbox)

    def copies(self) -> Mapping[bytes, Fields]:
        """The state under each changed key, with all its fields, as it is after the write."""
        return self._copies

    def _is_old(self, message: Message, shell_fields: dict[bytes, bytes | None]) -> bool:
        if not self.marked:
            return False
        for name, value in message.headers:
            if name == ids.HEADER:
                source, entry = ids.parse_id(value)
                known = self.states[OWN].get(MARK + source)
                if known is not None and ids.parse_entry(known) >= entry:
                    return True
                shell_fields[MARK + source] = ids.format_entry(entry)
                return False
        return False

    def _poison(self, view: Mapping[bytes, Fields], message: Message, error: Exception) -> Applied:
        refused = refusal(error)
        self.tally.refused.append(refused.kind)
        self.poisons.append(f"{message.topic}/{message.partition}/{message.offset}: {refused.reason}")
        letter = dead_letter(self.dead_topic, message, refused)
        try:
            applied = _checked(self.fold.on_poison(view, message, error), view)
        except Exception as further:
            self.poisons.append(f"on_poison raised too: {refusal(further).reason}")
            applied = Applied()
        return Applied(applied.changed, (letter, *applied.sends))

    def _take(self, message: Message, applied: Applied) -> None:
        for key, fields in applied.changed.items():
            self._change(key, fields)
        if message.offset < self.mute_below:
            self.tally.muted += len(applied.sends)
        else:
            self.outgoing += (
                (ids.entry_id(message.offset, number), send) for number, send in enumerate(applied.sends)
            )
        self._offset = message.offset

    def _change(self, key: bytes, fields: Mapping[bytes, bytes | None]) -> None:
        if not fields:
            return
        if key not in self._copies:
            self.states[key] = self._copies[key] = dict(self.states[key])
        copy = self._copies[key]
        for name, value in fields.items():
            if value is None:
                copy.pop(name, None)
            else:
                copy[name] = value
        self._dirty.setdefault(key, {}).update(fields)


def _checked(applied: Applied, view: Mapping[bytes, Fields]) -> Applied:
    for key in applied.changed:
        if key not in view:
            raise KeyError(f"the fold changed the state {key!r} without naming it in `keys`")
    check_size(applied.sends)
    return applied
