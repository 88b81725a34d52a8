"""The jobs that the fold has read or written last, beside the bytes that they stand for.

To read a job of thousands of ranks takes milliseconds, and each of its records asks for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from midwatch.agents.detect.incident.state import Job
from midwatch.streams.worker.fold import Fields

_JOBS = 32


@dataclass(slots=True)
class JobMemory:
    """A few jobs by their key, each with its fields. It changes the speed of a fold, never its result.

    A remembered job counts only while its fields are equal to the fields that are asked for. So a rollback or
    another owner of the partition only costs time.
    """

    read: Callable[[Fields], Job]
    known: dict[bytes, tuple[Fields, Job]] = field(default_factory=dict)

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
            del self.known[next(iter(self.known))]
