"""Snapshots: detect writes them so that a fold may begin in the middle of a job.

Kafka deletes old records, and a job may be older than the log. Midwatch does nothing for a job whose history
begins neither at its own start nor at a snapshot. The numbers of its attempts may be wrong, and its budget
may be spent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from midwatch.agents.detect.diagnosis.root_line import root_of
from midwatch.agents.detect.incident.state import JobState, NodeState
from midwatch.agents.detect.incident.turn import Turn
from midwatch.rules.detectors.loss_spike import LossWindow
from midwatch.rules.detectors.silence import Pulse
from midwatch.streams.records import Event, Held, Member, Resumption, Snapshot, SpecEvent
from midwatch.streams.records.codec import encode

_HELD = 64
_JUDGED = 4000  # file generations of all nodes together
_QUIET_MS = 600_000  # shorter than the time for which the lists of jobs read `events`
_BYTES = 600_000  # Kafka's clients refuse a record a little above 1,000,000


def begins_whole(event: Event, *, cut: bool) -> bool:
    """Whether the history of a job whose first record is `event` begins at its start.

    `cut`: Kafka may have deleted earlier records. A spec marks a start, and a snapshot makes up for deleted
    records.
    """
    return not cut or isinstance(event, SpecEvent)


def next_snapshot_ms(turn: Turn) -> int | None:
    """When the next daily snapshot is due; None for a job that is over, or whose incident has to settle."""
    state, incident = turn.state, turn.state.incident
    if not state.whole or not _lives(turn) or (incident is not None and incident.state == "ended"):
        return None
    return state.carry_ms


def write_snapshot_if_due(turn: Turn) -> None:
    """Write a snapshot at the start of an attempt, and then every `carry_every` while it lives.

    A job that sends heartbeats without progress gets one every ten minutes. A reader of the last `events`
    finds the number of the attempt and its step there.
    """
    state = turn.state
    if not state.whole or not _lives(turn):
        return
    due = next_snapshot_ms(turn)
    if not turn.began and not _quiet(turn) and (due is None or due > turn.now_ms):
        if state.carry_ms is None:
            turn.set(carry_ms=turn.now_ms + _pause_ms(turn))
        return
    turn.set(carry_ms=turn.now_ms + _pause_ms(turn), shown_ms=turn.now_ms)
    turn.snapshot(snapshot_of(turn))


def snapshot_of(turn: Turn) -> Snapshot:
    """The job's state in a record that Kafka takes. If it is too large, its largest parts go first."""
    whole = _summary(turn)
    lighter: tuple[Callable[[Snapshot], Snapshot], ...] = (
        lambda snapshot: replace(snapshot, members=tuple(replace(m, judged={}) for m in snapshot.members)),
        lambda snapshot: replace(snapshot, members=()),
        lambda snapshot: replace(snapshot, held=(), noted=()),
    )
    for drop in lighter:
        if len(encode(whole)) <= _BYTES:
            break
        whole = drop(whole)
    return whole


def on_snapshot(turn: Turn, snapshot: Snapshot) -> None:
    """Begin the fold of a job at its snapshot. A fold that knows the job already ignores the snapshot."""
    state = turn.state
    if state.attempt and state.whole and snapshot.incarnations.get(state.incarnation, 0) <= state.attempt:
        return
    later = [name for name in state.incarnations if name not in snapshot.incarnations]
    numbers = dict(snapshot.incarnations)
    for name in sorted(later, key=state.incarnations.__getitem__):
        numbers[name] = max(numbers.values(), default=0) + 1
    turn.nodes = _with_members(turn, snapshot)
    if state.incarnation and state.incarnation not in snapshot.incarnations:
        adopted = _renumbered(state, snapshot)
    else:
        adopted = _continued(state, snapshot)
    turn.state = replace(
        adopted,
        whole=True,
        attempt=numbers.get(adopted.incarnation, snapshot.attempt),
        incarnations=numbers,
        started_by={**snapshot.started_by, **state.started_by},
        spec=state.spec or snapshot.spec,
        awaited_ms=turn.now_ms,
        carry_ms=turn.now_ms + _pause_ms(turn),
        shown_ms=turn.now_ms,
    )
    incident = turn.state.incident
    if incident is not None:
        turn.set(incident=replace(incident, attempt=turn.state.attempt, cut=False))


def _summary(turn: Turn) -> Snapshot:
    state = turn.state
    return Snapshot(
        job=state.job,
        attempt=state.attempt,
        incarnations=state.incarnations,
        spec=state.spec,
        checkpoint_step=state.checkpoint_step,
        incarnation=state.incarnation,
        started_by=state.started_by,
        started_ms=state.started_ms,
        nodes=state.nodes,
        phase=state.phase,
        step=state.step,
        total=state.total,
        trained=state.trained,
        progress_nodes=state.progress_nodes,
        progress_line=state.progress_line,
        left=state.left,
        losses=state.losses.losses,
        spiking=state.losses.open,
        held=_weightiest(state.held),
        noted=state.noted,
        succeeded=state.succeeded,
        bundle=state.bundle,
        scheduler=state.scheduler,
        ended_ms=state.ended_ms,
        stalled=state.stalled,
        commanded=state.commanded,
        incident=state.incident,
        incidents=state.incidents,
        findings=state.findings,
        members=_members(turn),
        stopped=state.stopped,
        rates=state.rates,
        detectors=state.detectors,
        resumption=state.resumption,
    )


def _weightiest(held: tuple[Held, ...]) -> tuple[Held, ...]:
    """The root line and the earliest other lines, which the verdict needs."""
    if len(held) <= _HELD:
        return held
    root = root_of([each.hit for each in held])
    earliest = sorted(held, key=lambda each: (each.hit is not root, each.hit.line.time))[:_HELD]
    return tuple(each for each in held if each in earliest)


def _members(turn: Turn) -> tuple[Member, ...]:
    each = max(_JUDGED // max(len(turn.nodes), 1), 1)
    return tuple(
        Member(
            name=name,
            present=node.incarnation == turn.state.incarnation,
            interval=node.pulse.interval,
            clock=max(node.offsets, default=None),
            final=node.final,
            missing=node.missing,
            judged=dict(list(node.judged.items())[-each:]),
        )
        for name, node in turn.nodes.items()
    )


def _with_members(turn: Turn, snapshot: Snapshot) -> dict[str, NodeState]:
    """The nodes with those of the snapshot. A known node takes only judged offsets from it."""
    nodes = dict(turn.nodes)
    for member in snapshot.members:
        known = nodes.get(member.name)
        if known is None:
            known = NodeState(
                incarnation=snapshot.incarnation if member.present else "",
                pulse=Pulse(last_ms=turn.now_ms, interval=member.interval),
                offsets=() if member.clock is None else (member.clock,),
                final=member.final,
                missing=member.missing,
            )
        nodes[member.name] = replace(known, judged=_higher(member.judged, known.judged))
    return nodes


def _higher(offsets: Mapping[str, int], others: Mapping[str, int]) -> dict[str, int]:
    return {name: max(offsets.get(name, -1), others.get(name, -1)) for name in {**offsets, **others}}


def _renumbered(state: JobState, snapshot: Snapshot) -> JobState:
    """The state of an attempt that began after the snapshot. Only its numbers change."""
    return replace(state, incidents=state.incidents + snapshot.incidents)


def _continued(state: JobState, snapshot: Snapshot) -> JobState:
    """The snapshot's attempt, with the newer state since the snapshot."""
    further = state.step is not None and (snapshot.step is None or state.step >= snapshot.step)
    newer = state.incident is not None
    return JobState(
        job=snapshot.job,
        incarnation=snapshot.incarnation,
        started_ms=snapshot.started_ms,
        nodes=max(state.nodes, snapshot.nodes),
        phase=state.phase if further else snapshot.phase,
        step=state.step if further else snapshot.step,
        total=state.total if state.total is not None else snapshot.total,
        trained=state.trained or snapshot.trained,
        progress_nodes=state.progress_nodes if further else snapshot.progress_nodes,
        progress_line=state.progress_line or snapshot.progress_line,
        left=state.left or snapshot.left,
        losses=state.losses if state.losses.losses else LossWindow(snapshot.losses, snapshot.spiking),
        held=(*snapshot.held, *(held for held in state.held if held not in snapshot.held)),
        noted=state.noted or snapshot.noted,
        counts=state.counts,
        succeeded=state.succeeded or snapshot.succeeded,
        bundle=state.bundle or snapshot.bundle,
        checkpoint_step=snapshot.checkpoint_step,
        scheduler=state.scheduler or snapshot.scheduler,
        ended_ms=state.ended_ms if newer else snapshot.ended_ms,
        stalled=state.stalled if newer else snapshot.stalled,
        commanded=state.commanded or snapshot.commanded,
        incident=state.incident if newer else snapshot.incident,
        incidents=state.incidents + snapshot.incidents,
        findings={**snapshot.findings, **state.findings},
        stopped=tuple(dict.fromkeys((*snapshot.stopped, *state.stopped))),
        rates={**snapshot.rates, **state.rates},
        detectors={**snapshot.detectors, **state.detectors},
        resumption=_resumption(state.resumption, snapshot.resumption),
    )


def _resumption(newer: Resumption, known: Resumption) -> Resumption:
    """The snapshot's knowledge of earlier attempts, with the steps seen since."""
    return replace(
        known,
        told_step=known.told_step if known.told_step is not None else newer.told_step,
        first_step=known.first_step if known.first_step is not None else newer.first_step,
        interval=newer.interval or known.interval,
        written_ms=known.written_ms or newer.written_ms,
        judged=known.judged or newer.judged,
        told_path=known.told_path or newer.told_path,
        unit=known.unit if known.told_step is not None else newer.unit,
        first_epoch=known.first_epoch if known.first_epoch is not None else newer.first_epoch,
        epoch=newer.epoch if newer.epoch is not None else known.epoch,
    )


def _lives(turn: Turn) -> bool:
    """Whether neither the scheduler nor all nodes have reported the end. A job that hangs still lives."""
    state = turn.state
    if state.attempt == 0 or state.scheduler is not None:
        return False
    speaking = (node for node in turn.nodes.values() if node.incarnation == state.incarnation)
    first = next(speaking, None)
    return first is None or not first.final or not all(node.final for node in speaking)


def _quiet(turn: Turn) -> bool:
    """Whether a heartbeat comes now, and nothing has shown the job's progress for a while."""
    state = turn.state
    shown_ms = max(state.shown_ms, state.started_ms)
    return turn.now_ms - shown_ms >= _QUIET_MS and state.incident is None and turn.heard_ms() == turn.now_ms


def _pause_ms(turn: Turn) -> int:
    return int(turn.limits.carry_every * 1000)
