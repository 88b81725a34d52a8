"""The whole path of one job's events as one pure step: what happened, what is decided, what is ordered.

The Faust agents call the two halves, `detect` and `decide`, on either side of the topic `incidents`;
`midwatch replay` calls `step`. There is no third way from an event to a command.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from midwatch.agents.decision import Decided, DecideState, Rulebook, decide
from midwatch.agents.incident.fold import Folded, fire_timer, fold_event
from midwatch.agents.incident.limits import Limits
from midwatch.agents.incident.state import Job, JobState
from midwatch.streams.records import Carry, Command, Decision, Event, IncidentRecord


@dataclass(frozen=True, slots=True)
class Watch:
    """What is remembered of one job on both sides."""

    job: Job = field(default_factory=lambda: Job(JobState()))
    decided: DecideState = field(default_factory=DecideState)


@dataclass(frozen=True, slots=True)
class Step:
    """The watch behind the event, and all that came of it, in order."""

    watch: Watch
    records: tuple[IncidentRecord, ...]
    decisions: tuple[Decision, ...]
    commands: tuple[Command, ...]


def detect(job: Job, name: str, event: Event, now_ms: int, limits: Limits, *, cut: bool = False) -> Folded:
    """One event of one job; every timer due by `now_ms` fires before it, at its due time. `cut`: see
    `fold_event`."""
    fired = fire_due(job, now_ms, limits)
    folded = fold_event(fired.job, name, event, now_ms, limits, cut=cut)
    return Folded(folded.job, fired.records + folded.records, fired.carries + folded.carries)


def fire_due(job: Job, now_ms: int, limits: Limits) -> Folded:
    """Fire the timers of one job that are due by `now_ms`, in order."""
    records, carries = tuple[IncidentRecord, ...](), tuple[Carry, ...]()
    while (due := job.state.due_ms) is not None and due <= now_ms:
        fired = fire_timer(job, limits)
        job, records, carries = fired.job, records + fired.records, carries + fired.carries
    return Folded(job, records, carries)


def step(watch: Watch, name: str, event: Event, now_ms: int, *, limits: Limits, book: Rulebook) -> Step:
    """One event of one job, all the way."""
    return _on(watch, detect(watch.job, name, event, now_ms, limits), now_ms, book)


def wait_until(watch: Watch, now_ms: int, limits: Limits, book: Rulebook) -> Step:
    """Time passes and nothing happens: only timers fire."""
    return _on(watch, fire_due(watch.job, now_ms, limits), now_ms, book)


def _on(watch: Watch, folded: Folded, now_ms: int, book: Rulebook) -> Step:
    decided, decisions, commands = watch.decided, list[Decision](), list[Command]()
    for record in folded.records:
        turn: Decided = decide(decided, record, now_ms, book)
        decided = turn.state
        decisions += turn.decisions
        commands += turn.commands
    return Step(Watch(folded.job, decided), folded.records, tuple(decisions), tuple(commands))
