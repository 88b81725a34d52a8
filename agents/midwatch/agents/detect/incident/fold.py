"""The fold of one job: takes its state and one event, and gives the new state and records for decide."""

from __future__ import annotations

from dataclasses import dataclass, replace

from midwatch.agents.detect.incident.attempts import rename
from midwatch.agents.detect.incident.lines import on_hits
from midwatch.agents.detect.incident.outside_facts import on_act, on_outcome, on_scheduler, on_spec
from midwatch.agents.detect.incident.quorum import look, on_heartbeat, sight_due
from midwatch.agents.detect.incident.settling import settle_due, settle_if_due
from midwatch.agents.detect.incident.snapshots import (
    begins_whole,
    next_snapshot_ms,
    on_snapshot,
    write_snapshot_if_due,
)
from midwatch.agents.detect.incident.state import Job
from midwatch.agents.detect.incident.turn import Turn
from midwatch.agents.rulesets.outcomes import NO_OUTCOMES, OwnOutcomes
from midwatch.rules.detectors import DETECTORS
from midwatch.rules.detectors.base import Detectors
from midwatch.rules.detectors.limits import WatchLimits
from midwatch.streams.records import (
    Activation,
    Event,
    Heartbeat,
    Hits,
    IncidentRecord,
    Outcome,
    PersonAct,
    SchedulerFact,
    Snapshot,
    SpecEvent,
    Tick,
)


@dataclass(frozen=True, slots=True)
class Folded:
    """The job after the event, the records for decide in order, and the snapshots for `events`."""

    job: Job
    records: tuple[IncidentRecord, ...]
    snapshots: tuple[Snapshot, ...] = ()


def fold_with_timers(
    job: Job,
    name: str,
    event: Event,
    now_ms: int,
    limits: WatchLimits,
    *,
    detectors: Detectors = DETECTORS,
    outcomes: OwnOutcomes = NO_OUTCOMES,
    cut: bool = False,
) -> Folded:
    """Fold one event of one job. Every timer due by `now_ms` fires before it, at its due time.

    `outcomes`, `cut`: see `fold_event`.
    """
    fired = fire_due(job, now_ms, limits, detectors, outcomes)
    folded = fold_event(
        fired.job, name, event, now_ms, limits, detectors=detectors, outcomes=outcomes, cut=cut
    )
    return Folded(folded.job, fired.records + folded.records, fired.snapshots + folded.snapshots)


def fire_due(
    job: Job,
    now_ms: int,
    limits: WatchLimits,
    detectors: Detectors = DETECTORS,
    outcomes: OwnOutcomes = NO_OUTCOMES,
) -> Folded:
    """Fire the timers of one job that are due by `now_ms`, in order."""
    records, snapshots = tuple[IncidentRecord, ...](), tuple[Snapshot, ...]()
    while (due := job.state.due_ms) is not None and due <= now_ms:
        fired = fire_timer(job, limits, detectors, outcomes)
        job, records, snapshots = fired.job, records + fired.records, snapshots + fired.snapshots
    return Folded(job, records, snapshots)


def fold_event(
    job: Job,
    name: str,
    event: Event,
    now_ms: int,
    limits: WatchLimits,
    *,
    detectors: Detectors = DETECTORS,
    outcomes: OwnOutcomes = NO_OUTCOMES,
    cut: bool = False,
) -> Folded:
    """Fold one event of the job `name`, appended at `now_ms`. Timers due by then must have fired before.

    `outcomes`: how the user's own restarts ended, for the chance of a verdict. `cut`: Kafka may have deleted
    earlier events of the job, if this is the first one here.
    """
    turn = Turn(job, limits, detectors, now_ms, outcomes)
    if not turn.state.job:
        turn.set(whole=begins_whole(event, cut=cut))
    rename(turn, name)
    match event:
        case Hits():
            on_hits(turn, event)
        case Heartbeat():
            on_heartbeat(turn, event)
        case SchedulerFact():
            on_scheduler(turn, event)
        case Outcome():
            on_outcome(turn, event)
        case SpecEvent():
            on_spec(turn, event)
        case PersonAct():
            on_act(turn, event)
        case Snapshot():
            on_snapshot(turn, event)
        case Activation() | Tick():
            pass  # they belong to the partition, not to a job
    return _folded(turn)


def fire_timer(
    job: Job,
    limits: WatchLimits,
    detectors: Detectors = DETECTORS,
    outcomes: OwnOutcomes = NO_OUTCOMES,
) -> Folded:
    """Fire the job's earliest timer, at its due time."""
    due = job.state.due_ms
    turn = Turn(job, limits, detectors, due if due is not None else 0, outcomes)
    if due is not None:
        look(turn)
        settle_if_due(turn)
    return _folded(turn)


def _folded(turn: Turn) -> Folded:
    write_snapshot_if_due(turn)
    dues = [due for due in (sight_due(turn), settle_due(turn), next_snapshot_ms(turn)) if due is not None]
    # A timer without effect must not be due again at the same moment.
    due = max(min(dues), turn.now_ms + 1) if dues else None
    turn.state = replace(turn.state, due_ms=due)
    return Folded(turn.result(), tuple(turn.out), tuple(turn.snapshots))
