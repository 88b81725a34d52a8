"""Carries: what detect writes so that a fold may begin in the middle of a job, and how one begins there.

Records fall out of the log when they are old enough; a job may be older. Nothing is done for a job whose
history begins neither at its own start nor at a carry: its attempts may have other numbers, and its budget
may be spent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from midwatch.agents.detect.diagnosis.verdict import root_of
from midwatch.agents.detect.incident.state import JobState, NodeState
from midwatch.agents.detect.incident.turn import Turn
from midwatch.rules.detectors.loss_spike import LossWindow
from midwatch.rules.detectors.silence import Pulse
from midwatch.streams.records import Event, Held, Member, Snapshot, SpecEvent
from midwatch.streams.records.codec import encode

_HELD = 64
_JUDGED = 4000  # file generations of all nodes together
_BYTES = 600_000  # Kafka's clients refuse a record a little above 1,000,000


def begins_whole(event: Event, *, cut: bool) -> bool:
    """Whether a job whose first record is `event` is known from its start. `cut`: earlier ones may have
    been deleted from the log. A spec is written at a start; a carry brings what came before it."""
    return not cut or isinstance(event, SpecEvent)


def next_snapshot_ms(turn: Turn) -> int | None:
    """When the next daily carry is due; None while the job is over, or its end is not yet judged."""
    state, incident = turn.state, turn.state.incident
    if not state.whole or not _lives(turn) or (incident is not None and incident.state == "ended"):
        return None
    return state.carry_ms


def write_snapshot_if_due(turn: Turn) -> None:
    """At the start of an attempt, and then daily while it lives."""
    state = turn.state
    if not state.whole or not _lives(turn):
        return
    due = next_snapshot_ms(turn)
    if not turn.began and (due is None or due > turn.now_ms):
        if state.carry_ms is None:
            turn.set(carry_ms=turn.now_ms + _pause_ms(turn))
        return
    turn.set(carry_ms=turn.now_ms + _pause_ms(turn))
    turn.snapshot(snapshot_of(turn))


def snapshot_of(turn: Turn) -> Snapshot:
    """The job as it stands, in a record that Kafka takes."""
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
    """A fold may begin here: what came before is summed up in it. One that knows the job already goes on."""
    state = turn.state
    if state.attempt and state.whole and snapshot.incarnations.get(state.incarnation, 0) <= state.attempt:
        return
    since = [name for name in state.incarnations if name not in snapshot.incarnations]
    numbers = dict(snapshot.incarnations)
    for name in sorted(since, key=state.incarnations.__getitem__):
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
    )


def _weightiest(held: tuple[Held, ...]) -> tuple[Held, ...]:
    """The root and the earliest others: a verdict is made of them."""
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
    """The nodes that are known already know more than the carry, except of what was judged before."""
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


def _higher(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: max(one.get(name, -1), other.get(name, -1)) for name in {**one, **other}}


def _renumbered(state: JobState, snapshot: Snapshot) -> JobState:
    """The present attempt began after the carry was made: only its number is wrong."""
    return replace(state, incidents=state.incidents + snapshot.incidents)


def _continued(state: JobState, snapshot: Snapshot) -> JobState:
    """The carry's attempt goes on; what was seen of it since the carry was made is newer."""
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
    )


def _lives(turn: Turn) -> bool:
    """Until the scheduler, or every node, said that it is over; a job that hangs lives on."""
    state = turn.state
    if state.attempt == 0 or state.scheduler is not None:
        return False
    speaking = [node for node in turn.nodes.values() if node.incarnation == state.incarnation]
    return not speaking or not all(node.final for node in speaking)


def _pause_ms(turn: Turn) -> int:
    return int(turn.limits.carry_every * 1000)
