"""Settling: an incident goes from suspected over ended to settled, when no more evidence can come.

An incident settles when all nodes have sent their lines of the end. A node has done so with its final
heartbeat, or with a heartbeat that vouches for its lines past the end plus a grace. Detect gives up a node
after three intervals of silence, and names it. An incident settles `settle_max` after the end at the latest.

A broken path to Kafka may also silence a node. So detect gives up a node only after the path has shown life:
another node's heartbeat, three intervals later than the silent node's last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from msgspec import UNSET, UnsetType

from midwatch.agents.detect.diagnosis.chance import chance_of, end_class, shipped
from midwatch.agents.detect.diagnosis.open_spike import SPIKE, explained_by_spike
from midwatch.agents.detect.diagnosis.verdict import AttemptEnd, Diagnosis, diagnose
from midwatch.agents.detect.incident.contradicted_end import note_contradiction
from midwatch.agents.detect.incident.same_start import worked_before
from midwatch.agents.detect.incident.state import NodeState
from midwatch.agents.detect.incident.turn import Turn
from midwatch.rules.detectors.silence import MISSED_INTERVALS, Pulse
from midwatch.streams.records import Hit, Incident, SchedulerFact, Verdict


def present_diagnosis(turn: Turn, given_up: Sequence[str]) -> Diagnosis:
    """The diagnosis of the attempt from the evidence so far."""
    state = turn.state
    ending = AttemptEnd(
        scheduler=state.scheduler,
        silence=state.stalled,
        phase=state.phase,
        step=state.step,
        trained=state.trained,
        worked_before=worked_before(state),
        total=state.total,
        succeeded=state.succeeded,
        success=state.success_line,
        complete=not given_up,
        given_up=tuple(given_up),
        bundle=state.bundle,
        progress=state.progress_line,
        left=state.left,
        noted=tuple(noted.hit for noted in state.noted),
        checkpoints=state.spec.checkpoint_directory if state.spec else "",
    )
    diagnosis = diagnose([held.hit for held in state.held], ending)
    verdict = explained_by_spike(diagnosis.verdict, state.findings.get(SPIKE), state.progress_line)
    if verdict.state != "failed":
        return diagnosis
    end = end_class(verdict, stepped=ending.made_a_step())
    return replace(diagnosis, verdict=replace(verdict, chance=chance_of(end, shipped(), turn.outcomes)))


def suspect(turn: Turn, hit: Hit) -> None:
    """Open an incident on a line that could be the cause of an end. Nothing has ended yet."""
    if turn.state.incident is None:
        turn.incident(_draft(turn, "suspected", Diagnosis(Verdict(state="unknown"), (hit,))))


def withdraw(turn: Turn, why: str) -> None:
    """Withdraw the incident, because the job went on. `why` goes into the remedy."""
    incident = turn.state.incident
    if incident is None:
        return
    turn.emit(replace(incident, state="withdrawn", verdict=replace(incident.verdict, remedy=why)))
    turn.set(incident=None, ended_ms=None, stalled=None)


def end(turn: Turn, *, stalled: float | None = None) -> None:
    """Note that the attempt ended, or hangs. From here on the incident waits for the last evidence.

    `stalled`: seconds of silence, if the attempt hangs.
    """
    state = turn.state
    turn.set(
        ended_ms=turn.now_ms if state.ended_ms is None else state.ended_ms, stalled=stalled or state.stalled
    )
    turn.clear_finding("blind", "the attempt is over")
    diagnosis = present_diagnosis(turn, ())
    incident = state.incident
    if incident is not None and incident.state == "settled":
        revise(turn)
        return
    if incident is None:
        turn.incident(_draft(turn, "ended", diagnosis))
        return
    if incident.state == "ended" and incident.verdict == diagnosis.verdict:
        turn.set(incident=replace(incident, scheduler=turn.state.scheduler))
        return
    turn.incident(
        replace(
            incident,
            state="ended",
            verdict=diagnosis.verdict,
            evidence=diagnosis.evidence,
            rivals=diagnosis.rivals or UNSET,
            ended_ms=turn.state.ended_ms,
            scheduler=turn.state.scheduler,
            silence=turn.state.stalled,
        )
    )


def settle_if_due(turn: Turn) -> None:
    """Settle an ended incident if no evidence can come any more."""
    incident = turn.state.incident
    if incident is None or incident.state != "ended":
        return
    waiting, given_up = _last_evidence(turn)
    if turn.now_ms >= _ended(turn) + int(turn.limits.settle_max * 1000):
        given_up, waiting = (*given_up, *(name for name, _ in waiting)), ()
    if not waiting:
        settle(turn, given_up=given_up)


def settle(turn: Turn, *, given_up: Sequence[str], superseded_by: str = "") -> None:
    """Settle the incident: its verdict goes to decide."""
    diagnosis = present_diagnosis(turn, given_up)
    incident = turn.state.incident
    if incident is None:
        return
    note_contradiction(turn, diagnosis.verdict)
    words = tuple(
        word
        for word, is_known in (
            ("scheduler", turn.state.scheduler is not None),
            ("process", bool(turn.nodes) and all(n.final for n in _speaking(turn).values())),
        )
        if is_known
    )
    turn.incident(
        replace(
            incident,
            state="settled",
            revision=incident.revision + 1,
            verdict=diagnosis.verdict,
            evidence=diagnosis.evidence,
            rivals=diagnosis.rivals or UNSET,
            counts=turn.state.counts,
            settled_ms=turn.now_ms,
            ended_ms=turn.state.ended_ms,
            scheduler=turn.state.scheduler,
            spec=turn.state.spec,
            silence=turn.state.stalled,
            superseded_by=superseded_by or _requeued_as(turn.state.scheduler),
            words=words,
            line_ms=_root_logged(turn, diagnosis),
            first_step_s=_until_first_step(turn),
        )
    )


def revise(turn: Turn) -> None:
    """Raise the revision of a settled incident, if a later fact changes its verdict."""
    incident = turn.state.incident
    if incident is None or incident.state != "settled" or turn.state.commanded:
        return
    given_up = _still_silent(turn, incident.verdict.given_up)
    before, now = incident.verdict, present_diagnosis(turn, given_up).verdict
    same = _without_progress(now) == _without_progress(before)
    if not same or incident.scheduler != turn.state.scheduler:
        settle(turn, given_up=given_up)


def _without_progress(verdict: Verdict) -> Verdict:
    """The verdict without its progress, because progress withdraws a hang and must not revise it.

    Nor must other counts of outcomes, which a new bundle may bring.
    """
    still = replace(verdict, step=None, phase=None, chance=UNSET)
    if verdict.error_type != "hang":
        return still
    return replace(still, root_line="", root_file="", root_line_number=None, node="", rank=None)


def settle_due(turn: Turn) -> int | None:
    """When an ended incident settles if no event comes; None without such an incident."""
    incident = turn.state.incident
    if incident is None or incident.state != "ended":
        return None
    waiting, _ = _last_evidence(turn)
    latest = _ended(turn) + int(turn.limits.settle_max * 1000)
    return min((latest, *(due for _, due in waiting)))


def _last_evidence(turn: Turn) -> tuple[tuple[tuple[str, int], ...], tuple[str, ...]]:
    """The nodes and the scheduler that the incident waits for, with deadlines, and the nodes given up."""
    ended, waiting, given_up = _ended(turn), [], []
    speaking = _speaking(turn)
    shown_ms = max((node.logged_ms for node in speaking.values()), default=0)
    latest = int(turn.limits.settle_max * 1000)
    for name, node in sorted(speaking.items()):
        if _vouched(turn, node):
            continue
        if turn.now_ms < node.pulse.missing_at():
            waiting.append((name, node.pulse.missing_at()))
        elif shown_ms >= node.logged_ms + _missed_ms(node.pulse) or _node_failed(turn.state.scheduler):
            given_up.append(name)
        else:
            waiting.append((name, ended + latest))
    unheard = turn.state.nodes - len(speaking)
    if unheard > 0:
        due = ended + _missed_ms(Pulse())
        if shown_ms <= ended:
            # The path has shown nothing since the end, so the silent nodes may have sent heartbeats.
            due = max(due, turn.state.started_ms + latest)
        if turn.now_ms < due:
            waiting.append((f"{unheard} never heard of", due))
        else:
            given_up.append(f"{unheard} never heard of")
    if turn.state.scheduler is None and turn.state.stalled is None:
        due = ended + int(turn.limits.scheduler_wait * 1000)
        if turn.now_ms < due:
            waiting.append(("scheduler", due))
    return tuple(waiting), tuple(given_up)


def _still_silent(turn: Turn, given_up: Sequence[str]) -> tuple[str, ...]:
    """The given-up nodes that are still silent."""
    speaking = _speaking(turn)
    unheard = any(name not in speaking for name in given_up)
    silent = [
        name
        for name, node in sorted(speaking.items())
        if (unheard or name in given_up) and not _vouched(turn, node)
    ]
    never = turn.state.nodes - len(speaking)
    return (*silent, *([f"{never} never heard of"] if unheard and never > 0 else []))


def _vouched(turn: Turn, node: NodeState) -> bool:
    """Whether all lines of the node up to the end have come."""
    return node.final or node.seen_ms > _ended(turn) + int(turn.limits.grace * 1000)


def _missed_ms(pulse: Pulse) -> int:
    return int(MISSED_INTERVALS * pulse.interval * 1000)


def _node_failed(fact: SchedulerFact | None) -> bool:
    """Whether the scheduler itself reports a lost node."""
    return fact is not None and (
        fact.error_type == "ray_node_died" or fact.new.upper().startswith("NODE_FAIL")
    )


def _requeued_as(fact: SchedulerFact | None) -> str:
    """The incarnation of the job's next start, if SLURM has requeued the job; "" otherwise."""
    if fact is None or fact.new != "REQUEUED":
        return ""
    job, _, restarts = fact.incarnation.rpartition(":")
    return f"{job}:{int(restarts) + 1}" if restarts.isdigit() else ""


def _speaking(turn: Turn) -> dict[str, NodeState]:
    return {k: n for k, n in turn.nodes.items() if n.incarnation == turn.state.incarnation}


def _ended(turn: Turn) -> int:
    return turn.state.ended_ms if turn.state.ended_ms is not None else turn.now_ms


def _root_logged(turn: Turn, diagnosis: Diagnosis) -> int | None:
    if not diagnosis.evidence or not diagnosis.verdict.rule:
        return None
    root = diagnosis.evidence[0]
    known = (*turn.state.held, *turn.state.noted)
    return next((h.logged_ms for h in known if h.hit.rule == root.rule and h.hit.line == root.line), None)


def _until_first_step(turn: Turn) -> float | UnsetType:
    """Seconds from the start to the first step; UNSET where no clock tells, as in a replay of a file."""
    first_ms, started_ms = turn.state.resumption.first_step_ms, turn.state.started_ms
    return (first_ms - started_ms) / 1000 if first_ms and started_ms and first_ms > started_ms else UNSET


def _draft(turn: Turn, state: str, diagnosis: Diagnosis) -> Incident:
    number = turn.state.incidents + 1
    turn.set(incidents=number)
    return Incident(
        id=f"{turn.state.job}#{turn.state.attempt}.{number}",
        job=turn.state.job,
        attempt=turn.state.attempt,
        incarnation=turn.state.incarnation,
        state="suspected" if state == "suspected" else "ended",
        revision=0,
        verdict=diagnosis.verdict,
        evidence=diagnosis.evidence,
        rivals=diagnosis.rivals or UNSET,
        opened_ms=turn.now_ms,
        ended_ms=turn.state.ended_ms,
        scheduler=turn.state.scheduler,
        spec=turn.state.spec,
        silence=turn.state.stalled,
    )
