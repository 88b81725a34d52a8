"""The whole path of one job's event as one pure step: the incident, the decision, the command.

The Faust agents call the two halves, `fold_with_timers` and `decide`, on either side of the topic
`incidents`. `midwatch replay` calls `step`. No third path leads from an event to a command.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from midwatch.agents.decide.decision import Decided, Rulebook, decide
from midwatch.agents.decide.state import DecideState
from midwatch.agents.detect.incident.fold import Folded, fire_due, fold_with_timers
from midwatch.agents.detect.incident.state import Job, JobState
from midwatch.rules.detectors import DETECTORS
from midwatch.rules.detectors.base import Detectors
from midwatch.rules.detectors.limits import WatchLimits
from midwatch.streams.records import Command, Decision, Event, IncidentRecord


@dataclass(frozen=True, slots=True)
class JobWatch:
    """The state of one job in detect and in decide."""

    job: Job = field(default_factory=lambda: Job(JobState()))
    decided: DecideState = field(default_factory=DecideState)


@dataclass(frozen=True, slots=True)
class PipelineStep:
    """The watch after the event, with the records, decisions and commands of the event in order."""

    watch: JobWatch
    records: tuple[IncidentRecord, ...]
    decisions: tuple[Decision, ...]
    commands: tuple[Command, ...]


def step(
    watch: JobWatch,
    name: str,
    event: Event,
    now_ms: int,
    *,
    limits: WatchLimits,
    book: Rulebook,
    detectors: Detectors = DETECTORS,
) -> PipelineStep:
    """Take one event of one job through detect and decide."""
    folded = fold_with_timers(watch.job, name, event, now_ms, limits, detectors=detectors)
    return _on(watch, folded, now_ms, book)


def wait_until(watch: JobWatch, now_ms: int, limits: WatchLimits, book: Rulebook) -> PipelineStep:
    """Let time pass without an event, so that only timers fire."""
    return _on(watch, fire_due(watch.job, now_ms, limits), now_ms, book)


def _on(watch: JobWatch, folded: Folded, now_ms: int, book: Rulebook) -> PipelineStep:
    decided, decisions, commands = watch.decided, list[Decision](), list[Command]()
    for record in folded.records:
        turn: Decided = decide(decided, record, now_ms, book)
        decided = turn.state
        decisions += turn.decisions
        commands += turn.commands
    return PipelineStep(JobWatch(folded.job, decided), folded.records, tuple(decisions), tuple(commands))
