"""The census: all jobs and their starts, read from `events` alone. Pure.

The executor asks it whether a command is for the latest start of a job. The watcher asks it which starts
to look for. The census is read anew from the topic at each start, so it has no state to lose.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from midwatch.streams.errors import MalformedRecord, NewerRecord
from midwatch.streams.records import Outcome, SchedulerFact, Snapshot, SpecEvent
from midwatch.streams.records.bounds import JobText, Name
from midwatch.streams.records.codec import UNREADABLE, decode


@dataclass(slots=True)
class JobStart:
    """One incarnation of a job.

    `alive_at`: the reader's monotonic clock at its last heartbeat with a live process. `effect_key`: the
    key of the effect that started it; "" if midwatch did not start it.
    """

    job: str
    incarnation: str
    state: str = ""
    ended: bool = False
    alive_at: float | None = None
    effect_key: str = ""


@dataclass(slots=True)
class Census:
    """All jobs seen in `events`, and their starts in the sequence in which the topic names them."""

    jobs: dict[str, dict[str, JobStart]] = field(default_factory=dict)
    specs: dict[str, SpecEvent] = field(default_factory=dict)
    accepted: dict[str, Outcome] = field(default_factory=dict)
    """The outcome `accepted` of each command without a later outcome, by the command's id."""

    def apply(self, value: bytes, at: float, key: bytes | None = None) -> None:
        """Folds one message of `events`; `at` is the reader's monotonic clock.

        Skips a record that is unreadable, or whose job is not that of its key. Detect dead-letters such a
        record. A start that the census does not know only makes the executor refuse.
        """
        try:
            glimpse = _glimpse.decode(value)
        except UNREADABLE:
            return
        job = glimpse.origin.job if glimpse.origin is not None else glimpse.job
        if key is not None and job.encode() != key:
            return
        if glimpse.origin is not None:
            if glimpse.origin.incarnation not in self.jobs.get(job, ()) and not _readable(value):
                return
            start = self._seen(glimpse.origin.job, glimpse.origin.incarnation)
            if glimpse.record == "beat" and glimpse.alive:
                start.alive_at = at
            return
        try:
            record = decode(value)
        except (MalformedRecord, NewerRecord):
            return
        self._fold(record)

    def incarnations(self, job: str) -> tuple[str, ...]:
        """The incarnations of the job, oldest first."""
        return tuple(self.jobs.get(job, ()))

    def starts(self, cluster_kind: str) -> Iterator[JobStart]:
        """All starts whose incarnation is of this kind of scheduler (`slurm`, `local`, `ray`)."""
        for starts in self.jobs.values():
            for start in starts.values():
                if start.incarnation.startswith(f"{cluster_kind}:"):
                    yield start

    def _fold(self, record: object) -> None:
        match record:
            case SpecEvent():
                self.specs[record.job] = record
                self._seen(record.job, record.incarnation)
            case Outcome():
                self._seen(record.job, record.new_incarnation)
                if record.state == "accepted":
                    self.accepted[record.command] = record
                else:
                    self.accepted.pop(record.command, None)
            case Snapshot():
                for incarnation in sorted(record.incarnations, key=record.incarnations.__getitem__):
                    self._seen(record.job, incarnation)
            case SchedulerFact():
                start = self._seen(record.job, record.incarnation)
                start.state = record.new
                start.ended = start.ended or record.ended
                start.effect_key = record.effect_key or start.effect_key
            case _:
                pass

    def _seen(self, job: str, incarnation: str) -> JobStart:
        start = JobStart(job, incarnation)
        return self.jobs.setdefault(job, {}).setdefault(incarnation, start) if incarnation else start


def _readable(value: bytes) -> bool:
    """Whether detect can read it too: a record that detect dead-letters must add no start here."""
    try:
        decode(value)
    except (MalformedRecord, NewerRecord):
        return False
    return True


class _Origin(msgspec.Struct):
    job: JobText
    incarnation: Name


class _Glimpse(msgspec.Struct):
    """The few fields of hits and heartbeats that the census needs. The decoder skips all others."""

    record: str
    job: str = ""
    origin: _Origin | None = None
    alive: bool | None = None


_glimpse = msgspec.json.Decoder(_Glimpse)
