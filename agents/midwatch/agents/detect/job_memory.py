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

_Pieces = dict[int, tuple[Held, msgspec.Raw]]
"""The bytes of held lines by the identity of the line, which stands beside them so that it stays its own."""


@dataclass(slots=True)
class JobMemory:
    """A few jobs by their key, each with its fields. It changes the speed of a fold, never its result.

    A remembered job counts only while its fields are equal to the fields that are asked for. So a rollback or
    another owner of the partition only costs time.
    """

    read: Callable[[Fields], Job]
    known: dict[bytes, tuple[Fields, Job]] = field(default_factory=dict)
    pieces: dict[bytes, _Pieces] = field(default_factory=dict)

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
            self.pieces.pop(gone, None)

    def encoded(self, key: bytes, state: JobState) -> bytes:
        """The bytes of the state, as `codec.state_to_bytes` gives them. Held lines are written only once."""
        before, lines = self.pieces.get(key, {}), list(map(id, state.held))
        known = map(before.get, lines)
        written = [piece or _piece(held) for piece, held in zip(known, state.held, strict=True)]
        if written:
            self.pieces[key] = dict(zip(lines, written, strict=True))
        else:
            self.pieces.pop(key, None)
        plain = {name: getattr(state, name) for name in _FIELDS}
        plain["held"] = [raw for _, raw in written]
        return codec.state_to_bytes(plain)


def _piece(held: Held) -> tuple[Held, msgspec.Raw]:
    return held, msgspec.Raw(codec.state_to_bytes(held))
