"""The quorum of a job: which nodes send heartbeats, whether these suffice, and how long the job is silent."""

from __future__ import annotations

from dataclasses import replace

from midwatch.agents.detect.incident.attempts import meet, older_heartbeats
from midwatch.agents.detect.incident.clocks import SAMPLES, correct_held_lines, read_ms
from midwatch.agents.detect.incident.detecting import show
from midwatch.agents.detect.incident.resumption import chose
from midwatch.agents.detect.incident.settling import end, revise, settle_if_due
from midwatch.agents.detect.incident.state import NodeState
from midwatch.agents.detect.incident.turn import Turn
from midwatch.rules.detectors.base import HeartbeatSeen, SilenceSeen
from midwatch.rules.detectors.silence import (
    MISSED_INTERVALS,
    Pulse,
    Quorum,
    quorum,
    silence_of_job,
    take_heartbeat,
)
from midwatch.streams.records import LINES_READ, Heartbeat


def on_heartbeat(turn: Turn, heartbeat: Heartbeat) -> None:
    """Fold a heartbeat of a shipper, and the silence that it counts."""
    origin = heartbeat.origin
    if not meet(turn, origin.incarnation, nodes=origin.nodes):
        if heartbeat.final or heartbeat.alive is not None:
            alive = bool(heartbeat.alive) and not heartbeat.final
            older_heartbeats(
                turn, origin.incarnation, alive=alive, logged_ms=heartbeat.logged_ms or turn.now_ms
            )
        return
    node = turn.nodes.get(origin.node, NodeState())
    taken = take_heartbeat(
        node.pulse,
        shipper=origin.shipper,
        sequence=heartbeat.sequence,
        monotonic=heartbeat.monotonic,
        interval=heartbeat.interval,
        at_end=heartbeat.at_end,
        now_ms=turn.now_ms,
    )
    if not taken.fresh:
        return
    if heartbeat.checkpoint is not None:
        chose(turn, heartbeat.checkpoint)
    if turn.state.queued:
        turn.set(queued=False)  # the job runs, and the scheduler's report of that comes later
    lines = int(heartbeat.samples.get(LINES_READ, 0))
    prints = node.pulse.shipper == origin.shipper and lines > node.lines
    logged = heartbeat.logged_ms or turn.now_ms
    offsets = (*node.offsets, heartbeat.wall - logged / 1000)[-SAMPLES:]
    correct_held_lines(turn, origin.node, node.offsets, offsets)
    turn.nodes[origin.node] = replace(
        node,
        incarnation=origin.incarnation,
        pulse=taken.pulse,
        offsets=offsets,
        logged_ms=max(node.logged_ms, logged),
        seen_ms=max(node.seen_ms, read_ms(offsets, logged)) if heartbeat.at_end else node.seen_ms,
        final=node.final or heartbeat.final,
        alive=heartbeat.alive,
        lines=lines,
    )
    if prints and turn.state.spec is not None and turn.state.spec.any_line:
        forget_silence(turn)
    show(
        turn,
        HeartbeatSeen(
            at_ms=turn.now_ms,
            node=origin.node,
            step=turn.state.step,
            phase=turn.state.phase,
            interval=heartbeat.interval,
            alive=heartbeat.alive,
            samples=heartbeat.samples,
        ),
    )
    look(turn)
    speaking = _speaking(turn)
    if turn.running() and len(speaking) >= turn.state.nodes and all(n.final for n in speaking.values()):
        end(turn)
    settle_if_due(turn)
    incident = turn.state.incident
    if incident is not None and incident.verdict.given_up:
        revise(turn)


def look(turn: Turn) -> None:
    """Open and clear findings about missing nodes and the quorum, and end the attempt if it hangs."""
    if not turn.running() or turn.state.queued:
        return
    sight = _quorum(turn)
    for name in sight.missing:
        turn.nodes[name] = replace(turn.nodes[name], missing=True)
        turn.open_finding(f"node_silent:{name}", f"node {name} has sent no heartbeat for three intervals")
    for name in sight.present:
        if turn.nodes[name].missing:
            turn.nodes[name] = replace(turn.nodes[name], missing=False)
            turn.clear_finding(f"node_silent:{name}", f"node {name} sends heartbeats again")
    if not sight.holds:
        turn.set(quorum_held=False)
        unheard = turn.now_ms >= _first_heartbeats_due(turn) and "no_beats" not in turn.state.findings
        if (sight.missing or unheard) and turn.now_ms >= _blind_from(turn, sight):
            turn.open_finding("blind", f"blind: {sight.reason}; silence proves nothing")
        return
    turn.clear_finding("no_beats", "enough nodes send heartbeats")
    if not turn.state.quorum_held:
        turn.set(quorum_held=True)
        forget_silence(turn)
        turn.clear_finding("blind", "enough nodes are seen again; silence is counted from now")
        return
    silence = silence_of_job(_pulses(turn), sight)
    # A job that reported success may clean up in silence without a limit.
    if not turn.state.succeeded:
        phase = turn.state.phase
        show(turn, SilenceSeen(turn.now_ms, silence, turn.limits.silence(phase), phase))


def forget_silence(turn: Turn) -> None:
    """Reset the counted silence of all nodes: after progress, and after the return of a lost quorum."""
    for name, node in turn.nodes.items():
        if node.pulse.silence:
            turn.nodes[name] = replace(node, pulse=replace(node.pulse, silence=0.0))


def sight_due(turn: Turn) -> int | None:
    """When the next node counts as missing if it stays silent; None without such a time."""
    if not turn.running() or turn.state.queued:
        return None
    speaking = [n for n in turn.nodes.values() if n.incarnation == turn.state.incarnation]
    due = [n.pulse.missing_at() for n in speaking if not n.final and not n.missing]
    if len(speaking) < turn.state.nodes and turn.now_ms < _first_heartbeats_due(turn):
        due.append(_first_heartbeats_due(turn))
    if not turn.state.quorum_held and "blind" not in turn.state.findings:
        told_at = _blind_from(turn, _quorum(turn))
        due += [told_at] if told_at > turn.now_ms else []
    return min(due, default=None)


def _blind_from(turn: Turn, sight: Quorum) -> int:
    """From when a lost quorum is told as `blind`: at once while another node of the job is in sight.

    Shippers may have ended with their job. So once all of them are silent, the scheduler may speak first.
    """
    speaking = _speaking(turn).values()
    if sight.present or not speaking:
        return turn.now_ms
    return max(n.pulse.missing_at() for n in speaking) + int(turn.limits.scheduler_wait * 1000)


def _first_heartbeats_due(turn: Turn) -> int:
    """When a node without any heartbeat counts as missing. Until then it may still be starting."""
    since = max(turn.state.started_ms, turn.state.awaited_ms)
    return since + int(MISSED_INTERVALS * Pulse().interval * 1000)


def _speaking(turn: Turn) -> dict[str, NodeState]:
    return {k: n for k, n in turn.nodes.items() if n.incarnation == turn.state.incarnation}


def _pulses(turn: Turn) -> dict[str, Pulse]:
    # A node with a final heartbeat has ended: it is not missing, and it cannot end a silence.
    return {k: n.pulse for k, n in _speaking(turn).items() if not n.final}


def _quorum(turn: Turn) -> Quorum:
    finished = {k for k, n in _speaking(turn).items() if n.final}
    return quorum(
        _pulses(turn),
        nodes=max(turn.state.nodes - len(finished), 1),
        progress_nodes=set(turn.state.progress_nodes) - finished,
        now_ms=turn.now_ms,
    )
