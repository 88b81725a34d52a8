"""A turn: the draft of a job into which the fold writes the effects of one record.

The draft lives for one record only. The fold's input and output are values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields as fields_of
from dataclasses import replace
from operator import attrgetter
from typing import Any

from midwatch.agents.detect.incident.held_index import HeldIndex
from midwatch.agents.detect.incident.state import Job, JobState, NodeState
from midwatch.agents.rulesets.outcomes import NO_OUTCOMES, OwnOutcomes
from midwatch.rules.detectors.base import Detectors
from midwatch.rules.detectors.limits import WatchLimits
from midwatch.streams.records import Finding, Held, Incident, IncidentRecord, Line, Snapshot

_PLACES = {each.name: place for place, each in enumerate(fields_of(JobState))}
_values_of = attrgetter(*_PLACES)


class Turn:
    """The draft. `now_ms` is its only clock: the append time of the record, or a timer's due time."""

    def __init__(
        self,
        job: Job,
        limits: WatchLimits,
        detectors: Detectors,
        now_ms: int,
        outcomes: OwnOutcomes = NO_OUTCOMES,
    ) -> None:
        self.state: JobState = job.state
        self.nodes: dict[str, NodeState] = dict(job.nodes)
        self.limits = limits.of(job.state.spec)
        self.detectors = detectors
        self.outcomes = outcomes
        self.now_ms = now_ms
        self.out: list[IncidentRecord] = []
        self.snapshots: list[Snapshot] = []
        self.began = False
        """Whether an attempt began in this turn."""
        self._index = job.index

    def result(self) -> Job:
        """The job with the changes so far."""
        return Job(self.state, self.nodes, self._index)

    def set(self, **fields: Any) -> None:
        """Replace fields of the job's state. A record may do so dozens of times."""
        # `dataclasses.replace` looks at the description of each of the forty fields, and takes twice as long.
        values = list(_values_of(self.state))
        for name, value in fields.items():
            values[_PLACES[name]] = value
        self.state = JobState(*values)

    def index(self) -> HeldIndex:
        """The index of the lines that the state holds now."""
        if self._index.held is not self.state.held:
            self._index = HeldIndex.of(self.state.held)
        return self._index

    def hold(self, held: Held) -> None:
        """Add a held line to the job's state."""
        index = self.index()
        index.add(held)
        self.set(held=index.held)

    def drop(self, gone: Sequence[Held]) -> None:
        """Remove held lines from the job's state."""
        index = self.index()
        index.drop(gone)
        self.set(held=index.held)

    def emit(self, record: IncidentRecord) -> None:
        """Send a record to decide."""
        self.out.append(record)

    def snapshot(self, snapshot: Snapshot) -> None:
        """Write a snapshot of the job into the topic `events`."""
        self.snapshots.append(snapshot)

    def incident(self, incident: Incident) -> None:
        """Keep the incident in the state and send it to decide."""
        incident = replace(incident, cut=not self.state.whole, heard_ms=self.heard_ms())
        self.set(incident=incident)
        self.emit(incident)

    def open_finding(
        self,
        name: str,
        detail: str,
        *,
        lines: tuple[Line, ...] = (),
        quantities: dict[str, str] | None = None,
    ) -> None:
        """Open a finding. A finding that is open already stays as it is."""
        if name in self.state.findings:
            return
        finding = Finding(
            self.state.job,
            self.state.attempt,
            name,
            True,
            self.now_ms,
            detail,
            lines,
            quantities or {},
            self.state.step,
            self.heard_ms(),
        )
        self.set(findings={**self.state.findings, name: finding})
        self.emit(finding)

    def clear_finding(self, name: str, detail: str) -> None:
        """Clear a finding, if it is open."""
        finding = self.state.findings.get(name)
        if finding is None:
            return
        self.set(findings={k: v for k, v in self.state.findings.items() if k != name})
        self.emit(replace(finding, open=False, at_ms=self.now_ms, detail=detail))

    def heard_ms(self) -> int | None:
        """The append time of the present attempt's last heartbeat; None without one."""
        present = (n for n in self.nodes.values() if n.incarnation == self.state.incarnation)
        return max((n.pulse.last_ms for n in present if n.pulse.shipper), default=None)

    def running(self) -> bool:
        """Whether the present attempt has neither ended nor stalled."""
        return self.state.attempt > 0 and self.state.ended_ms is None
