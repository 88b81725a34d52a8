"""The jobs that the fold has read or written last, beside the bytes that they stand for.

To read or write a job of thousands of ranks takes milliseconds, and each of its records asks for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields

import msgspec

from midwatch.agents.detect.incident.state import Job, JobState
from midwatch.streams.records import Held, codec
from midwatch.streams.worker.fold import Fields

_JOBS = 32
_FIELDS = tuple(each.name for each in fields(JobState))

_LARGE = ("counts", "incident")
"""Fields with much text that most records leave as they are."""

_Piece = tuple[object, msgspec.Raw]
"""A value and its bytes. The value stands beside them so that its identity stays its own."""


@dataclass(slots=True)
class _Written:
    """What was encoded for one job: held lines by their identity, large fields by their name."""

    lines: dict[int, _Piece] = field(default_factory=dict)
    fields: dict[str, _Piece] = field(default_factory=dict)

    def held(self, held: tuple[Held, ...]) -> list[msgspec.Raw]:
        """The bytes of the held lines. Of lines that are held no longer nothing stays."""
        names = list(map(id, held))
        known = map(self.lines.get, names)
        pieces = [piece or _piece(line) for piece, line in zip(known, held, strict=True)]
        self.lines = dict(zip(names, pieces, strict=True))
        return [raw for _, raw in pieces]

    def large(self, name: str, value: object) -> msgspec.Raw:
        """The bytes of a large field."""
        known = self.fields.get(name)
        if known is None or known[0] is not value:
            known = self.fields[name] = _piece(value)
        return known[1]


def _piece(value: object) -> _Piece:
    return value, msgspec.Raw(codec.state_to_bytes(value))


@dataclass(slots=True)
class JobMemory:
    """A few jobs by their key, each with its fields. It changes the speed of a fold, never its result.

    A remembered job counts only while its fields are equal to the fields that are asked for. So a rollback or
    another owner of the partition only costs time.
    """

    read: Callable[[Fields], Job]
    known: dict[bytes, tuple[Fields, Job]] = field(default_factory=dict)
    written: dict[bytes, _Written] = field(default_factory=dict)

    def job(self, key: bytes, fields: Fields) -> Job:
        """The job in these fields."""
        known = self.known.get(key)
        if known is not None and known[0] == fields:
            return known[1]
        job = self.read(fields)
        self.keep(key, dict(fields), job)
        return job

    def keep(self, key: bytes, fields: Fields, job: Job) -> None:
        """Remember the job that these fields hold. Nobody may change the mapping later."""
        self.known.pop(key, None)
        self.known[key] = (fields, job)
        if len(self.known) > _JOBS:
            gone = next(iter(self.known))
            del self.known[gone]
            self.written.pop(gone, None)

    def encoded(self, key: bytes, state: JobState) -> bytes:
        """The bytes of the state, as `codec.state_to_bytes` gives them. What stayed is not encoded again."""
        written = self.written.setdefault(key, _Written())
        plain = {name: getattr(state, name) for name in _FIELDS}
        plain["held"] = written.held(state.held)
        for name in _LARGE:
            plain[name] = written.large(name, plain[name])
        return codec.state_to_bytes(plain)
