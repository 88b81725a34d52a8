"""Attempts of a job: each new incarnation is the next attempt, whoever started it."""

from __future__ import annotations

from dataclasses import replace

from midwatch.agents.detect.incident.resumption import next_attempt
from midwatch.agents.detect.incident.same_start import is_known_to_work, of_one_job
from midwatch.agents.detect.incident.settling import settle
from midwatch.agents.detect.incident.state import JobState, NodeState
from midwatch.agents.detect.incident.turn import Turn

UNKNOWN = "unknown"
"""The incarnation of an attempt that only a foreign shipper has sent lines of."""


def meet(turn: Turn, incarnation: str, *, nodes: int | None = None, by: str = "") -> bool:
    """Note the incarnation of an event. Returns whether it is the present attempt's.

    An event of an older attempt must not touch the present one. A foreign shipper knows no incarnation; an
    empty one stands for the present attempt.
    """
    state = turn.state
    if not incarnation:
        incarnation = state.incarnation or UNKNOWN
    elif state.incarnation == UNKNOWN and turn.running() and incarnation not in state.incarnations:
        state = _named(turn, incarnation)
    if incarnation not in state.incarnations:
        _begin(turn, incarnation, by)
    elif by and not state.started_by.get(incarnation):
        turn.set(started_by={**state.started_by, incarnation: by})
    current = turn.state.incarnation == incarnation
    if current and nodes is not None and nodes > turn.state.nodes:
        turn.set(nodes=nodes)
    return current


def _named(turn: Turn, incarnation: str) -> JobState:
    """Give the incarnation to an attempt that only a foreign shipper has sent lines of so far."""
    incident = turn.state.incident
    turn.set(
        incarnation=incarnation,
        incarnations={incarnation: turn.state.attempt},
        incident=replace(incident, incarnation=incarnation) if incident else None,
    )
    return turn.state


def _begin(turn: Turn, incarnation: str, by: str) -> None:
    old = turn.state
    incident = old.incident
    if incident is not None and incident.state in ("suspected", "ended") and old.ended_ms is not None:
        settle(turn, given_up=(), superseded_by=incarnation)
    for name in list(turn.state.findings):
        turn.clear_finding(name, "the attempt is over")
    unended = old.attempt > 0 and old.scheduler is None and not old.commanded and old.ended_ms is None
    alive_beside = unended and not of_one_job(old.incarnation, incarnation)
    number = old.attempt + 1
    turn.state = JobState(
        job=old.job,
        attempt=number,
        incarnation=incarnation,
        incarnations={**old.incarnations, incarnation: number},
        started_by={**old.started_by, incarnation: by} if by else old.started_by,
        started_ms=turn.now_ms,
        nodes=old.spec.nodes if old.spec else 1,
        spec=old.spec,
        whole=old.whole,
        resumption=next_attempt(old.resumption, old.step, worked=is_known_to_work(old)),
    )
    turn.began = True
    # Judged offsets outlive the attempt, because a new shipper may read an old file from its beginning.
    turn.nodes = {name: NodeState(judged=node.judged) for name, node in turn.nodes.items()}
    if alive_beside:
        _two_alive(turn, old.incarnation, f"began while {old.incarnation} had not ended")


def older_ended(turn: Turn, incarnation: str) -> None:
    """Clear the finding `two_alive`, if it is about the older incarnation, which has ended."""
    found = turn.state.findings.get("two_alive")
    if found is not None and found.quantities.get("older") == incarnation:
        turn.clear_finding("two_alive", f"{incarnation} has ended")


def older_heartbeats(turn: Turn, incarnation: str, *, alive: bool, logged_ms: int) -> None:
    """Take a heartbeat of an older incarnation of the scheduler's same job.

    A scheduler that restarts a job under its id believes that the older copy is dead. On a node that it
    cannot reach, that copy may live on beside the new one. `logged_ms`: the heartbeat's append time on
    `logs`. A heartbeat from before the present attempt proves nothing.
    """
    if not alive:
        older_ended(turn, incarnation)
    elif of_one_job(incarnation, turn.state.incarnation) and logged_ms > turn.state.started_ms:
        _two_alive(turn, incarnation, f"runs while {incarnation} still sends heartbeats")


def _two_alive(turn: Turn, older: str, how: str) -> None:
    turn.open_finding(
        "two_alive",
        f"attempt {turn.state.attempt} ({turn.state.incarnation}) {how}",
        quantities={"older": older},
    )


def rename(turn: Turn, job: str) -> None:
    """Give the state the job's name, at the first record of the job."""
    if not turn.state.job:
        turn.state = replace(turn.state, job=job)
