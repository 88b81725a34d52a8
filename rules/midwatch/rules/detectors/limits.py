"""How long a job may be silent, and how long midwatch waits after its end. All in seconds."""

from __future__ import annotations

from dataclasses import dataclass, replace

from midwatch.streams.records import Phase, SpecEvent


@dataclass(frozen=True, slots=True)
class WatchLimits:
    """Limits of silence by phase, and the grace periods of settling (`docs/design.md`, Settling).

    When a job's processes are gone, `scheduler_wait` is the time to wait for the scheduler's report. The
    report may show that a person cancelled the job. `carry_every` is the time between two snapshots of a live
    job.
    """

    startup: float = 1800.0
    compile: float = 1800.0
    training: float = 600.0
    evaluation: float = 3600.0
    checkpoint: float = 1800.0
    grace: float = 5.0
    scheduler_wait: float = 15.0
    settle_max: float = 120.0
    carry_every: float = 86_400.0

    def silence(self, phase: Phase) -> float:
        """Seconds of silence after which a job in this phase is stalled."""
        by_phase: dict[Phase, float] = {
            "startup": self.startup,
            "compile": self.compile,
            "training": self.training,
            "evaluation": self.evaluation,
            "checkpoint": self.checkpoint,
        }
        return by_phase[phase]

    def of(self, spec: SpecEvent | None) -> WatchLimits:
        """These limits, overridden by those of the job's spec."""
        overrides = {k: v for k, v in (spec.limits if spec else {}).items() if k in WatchLimits.__slots__}
        return replace(self, **overrides) if overrides else self
