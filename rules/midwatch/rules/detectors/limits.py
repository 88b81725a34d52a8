"""How long a job may be silent, and how long its last words are waited for. Seconds throughout."""

from __future__ import annotations

from dataclasses import dataclass, replace

from midwatch.streams.records import Phase, SpecEvent


@dataclass(frozen=True, slots=True)
class WatchLimits:
    """Silence by phase, and the grace periods of settling (`docs/design.md`, Settling).

    `scheduler_wait` is how long a job whose processes are gone waits for the scheduler's own word, which
    may turn a death into a person's cancel. `carry_every`: how often a live job is summed up in its topic.
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
        """These limits with those that the job's own spec sets."""
        known = {k: v for k, v in (spec.limits if spec else {}).items() if k in WatchLimits.__slots__}
        return replace(self, **known) if known else self
