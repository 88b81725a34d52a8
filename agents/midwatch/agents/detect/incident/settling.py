"""From suspected to settled: when everything that could still speak about an end has spoken.

An incident is settled when each node has vouched for its lines past the end plus a grace, or gave its
final beat; a node that is silent for three intervals is given up and named. Never later than `settle_max`.

That nothing arrives of a node may also be the fault of the path in between. So it is given up only once the
path has shown another node's beat that was written three intervals after its last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from midwatch.agents.detect.diagnosis.verdict import AttemptEnd, Diagnosis, diagnose
from midwatch.agents.detect.incident.state import NodeState
from midwatch.agents.detect.incident.turn import Turn
from midwatch.rules.detectors.silence import MISSED_INTERVALS, Pulse
from midwatch.streams.records import Hit, Incident, SchedulerFact, Verdict


def present_diagnosis(turn: Turn, given_up: Sequence[str]) -> Diagnosis:
    """What would be said of the attempt if nothing more were heard."""
    state = turn.state
    ending = AttemptEnd(
        scheduler=state.scheduler,
        silence=state.stalled,
        phase=state.phase,
        step=state.step,
        trained=state.trained,
        total=state.total,
        succeeded=state.succeeded,
        complete=not given_up,
        given_up=tuple(given_up),
        bundle=state.bundle,
        progress=state.progress_line,
        left=state.left,
        noted=tuple(noted.hit for noted in state.noted),
    )
    return diagnose([held.hit for held in state.held], ending)


def suspect(turn: Turn, hit: Hit) -> None:
    """A line that could be the cause of an end was seen; nothing has ended yet."""
    if turn.state.incident is None:
        turn.incident(_draft(turn, "suspected", Verdict(state="unknown"), (hit,)))


def withdraw(turn: Turn, why: str) -> None:
    """The job went on: whatever was suspected did not end it."""
    incident = turn.state.incident
    if incident is None:
        return
    turn.emit(replace(incident, state="withdrawn", verdict=replace(incident.verdict, remedy=why)))
    turn.set(incident=None, ended_ms=None, stalled=None)


def end(turn: Turn, *, stalled: float | None = None) -> None:
    """The attempt ended, or was found hanging: from here on its last words are waited for."""
    state = turn.state
    turn.set(
        ended_ms=turn.now_ms if state.ended_ms is None else state.ended_ms, stalled=stalled or state.stalled
    )
    diagnosis = present_diagnosis(turn, ())
    incident = state.incident
    if incident is not None and incident.state == "settled":
        revise(turn)
        return
    if incident is None:
        turn.incident(_draft(turn, "ended", diagnosis.verdict, diagnosis.evidence))
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
            ended_ms=turn.state.ended_ms,
            scheduler=turn.state.scheduler,
            silence=turn.state.stalled,
        )
    )


def settle_if_due(turn: Turn) -> None:
    """Settle an ended incident once nothing is waited for any more."""
    incident = turn.state.incident
    if incident is None or incident.state != "ended":
        return
    waiting, given_up = _last_words(turn)
    if turn.now_ms >= _ended(turn) + int(turn.limits.settle_max * 1000):
        given_up, waiting = (*given_up, *(name for name, _ in waiting)), ()
    if not waiting:
        settle(turn, given_up=given_up)


def settle(turn: Turn, *, given_up: Sequence[str], superseded_by: str = "") -> None:
    """The verdict, as it goes to decide."""
    diagnosis = present_diagnosis(turn, given_up)
    incident = turn.state.incident
    if incident is None:
        return
    words = tuple(
        word
        for word, said in (
            ("scheduler", turn.state.scheduler is not None),
            ("process", bool(turn.nodes) and all(n.final for n in _speaking(turn).values())),
        )
        if said
    )
    turn.incident(
        replace(
            incident,
            state="settled",
            revision=incident.revision + 1,
            verdict=diagnosis.verdict,
            evidence=diagnosis.evidence,
            counts=turn.state.counts,
            settled_ms=turn.now_ms,
            ended_ms=turn.state.ended_ms,
            scheduler=turn.state.scheduler,
            spec=turn.state.spec,
            silence=turn.state.stalled,
            superseded_by=superseded_by or _requeued_as(turn.state.scheduler),
            words=words,
            line_ms=_root_logged(turn, diagnosis),
        )
    )


def revise(turn: Turn) -> None:
    """A fact came after settling: if it changes what is said, raise the revision."""
    incident = turn.state.incident
    if incident is None or incident.state != "settled" or turn.state.commanded:
        return
    given_up = _still_silent(turn, incident.verdict.given_up)
    said, now = incident.verdict, present_diagnosis(turn, given_up).verdict
    same = _without_progress(now) == _without_progress(said)
    if not same or incident.scheduler != turn.state.scheduler:
        settle(turn, given_up=given_up)


def _without_progress(verdict: Verdict) -> Verdict:
    """A hung job that creeps on is told by its withdrawal, not by a revision for every step."""
    still = replace(verdict, step=None, phase=None)
    if verdict.error_type != "hang":
        return still
    return replace(still, root_line="", root_file="", root_line_number=None, node="", rank=None)


def settle_due(turn: Turn) -> int | None:
    """When an ended incident could settle by the passing of time alone."""
    incident = turn.state.incident
    if incident is None or incident.state != "ended":
        return None
    waiting, _ = _last_words(turn)
    latest = _ended(turn) + int(turn.limits.settle_max * 1000)
    return min((latest, *(due for _, due in waiting)))


def _last_words(turn: Turn) -> tuple[tuple[tuple[str, int], ...], tuple[str, ...]]:
    """Who is still waited for and until when, and who is given up."""
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
            # The path has shown nothing of the time after the end: a node may have spoken all along.
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
    """Those given up that have not answered since."""
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
    """Whether all lines of the node that belong to the end have come."""
    return node.final or node.seen_ms > _ended(turn) + int(turn.limits.grace * 1000)


def _missed_ms(pulse: Pulse) -> int:
    return int(MISSED_INTERVALS * pulse.interval * 1000)


def _node_failed(said: SchedulerFact | None) -> bool:
    """The scheduler itself says that a node is gone."""
    return said is not None and (
        said.error_type == "ray_node_died" or said.new.upper().startswith("NODE_FAIL")
    )


def _requeued_as(said: SchedulerFact | None) -> str:
    """The next start of the same job, where SLURM itself has begun it; it may not be heard of yet."""
    if said is None or said.new != "REQUEUED":
        return ""
    job, _, restarts = said.incarnation.rpartition(":")
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


def _draft(turn: Turn, state: str, verdict: Verdict, evidence: tuple[Hit, ...]) -> Incident:
    number = turn.state.incidents + 1
    turn.set(incidents=number)
    return Incident(
        id=f"{turn.state.job}#{turn.state.attempt}.{number}",
        job=turn.state.job,
        attempt=turn.state.attempt,
        incarnation=turn.state.incarnation,
        state="suspected" if state == "suspected" else "ended",
        revision=0,
        verdict=verdict,
        evidence=evidence,
        opened_ms=turn.now_ms,
        ended_ms=turn.state.ended_ms,
        scheduler=turn.state.scheduler,
        spec=turn.state.spec,
        silence=turn.state.stalled,
    )
