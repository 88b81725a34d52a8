"""One record's work on one job: a draft of the job that the steps of the fold write into.

The draft lives for one record only; what goes in and what comes out are values.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from midwatch.agents.detect.incident.state import Job, JobState, NodeState
from midwatch.rules.detectors.base import Detectors
from midwatch.rules.detectors.limits import WatchLimits
from midwatch.streams.records import Finding, Incident, IncidentRecord, Line, Snapshot


class Turn:
    """The draft. `now_ms` is the only clock: the append time of the record, or a timer's due time."""

    def __init__(self, job: Job, limits: WatchLimits, detectors: Detectors, now_ms: int) -> None:
        self.state: JobState = job.state
        self.nodes: dict[str, NodeState] = dict(job.nodes)
        self.limits = limits.of(job.state.spec)
        self.detectors = detectors
        self.now_ms = now_ms
        self.out: list[IncidentRecord] = []
        self.snapshots: list[Snapshot] = []
        self.began = False
        """Whether an attempt began in this turn."""

    def result(self) -> Job:
        """The job as it stands now."""
        return Job(self.state, self.nodes)

    def set(self, **fields: Any) -> None:
        """Replace fields of the job's state."""
        self.state = replace(self.state, **fields)

    def emit(self, record: IncidentRecord) -> None:
        """Pass a record on to decide."""
        self.out.append(record)

    def snapshot(self, snapshot: Snapshot) -> None:
        """Sum the job up in its own topic."""
        self.snapshots.append(snapshot)

    def incident(self, incident: Incident) -> None:
        """Remember the incident as it now stands and pass it on."""
        incident = replace(incident, cut=not self.state.whole)
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
        """Open a finding once; while it stands open, opening it again changes nothing."""
        if name in self.state.findings:
            return
        finding = Finding(
            self.state.job, self.state.attempt, name, True, self.now_ms, detail, lines, quantities or {}
        )
        self.set(findings={**self.state.findings, name: finding})
        self.emit(finding)

    def clear_finding(self, name: str, detail: str) -> None:
        """Clear a finding that stands open."""
        found = self.state.findings.get(name)
        if found is None:
            return
        self.set(findings={k: v for k, v in self.state.findings.items() if k != name})
        self.emit(replace(found, open=False, at_ms=self.now_ms, detail=detail))

    def running(self) -> bool:
        """Whether the present attempt has neither ended nor been found hanging."""
        return self.state.attempt > 0 and self.state.ended_ms is None
