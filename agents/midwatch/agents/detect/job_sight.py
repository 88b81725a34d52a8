"""What detect exports of a job: one value of its state and the time. Pure.

A job is `watched` only while it is seen well enough to judge it. A job that is not seen is `unknown`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from midwatch.agents.detect.incident.state import Job, JobState, NodeState
from midwatch.streams.records import Phase

Sight = Literal["watched", "failed", "unknown", "over"]
STATES: tuple[Sight, ...] = ("watched", "failed", "unknown", "over")
PHASES: tuple[Phase, ...] = ("startup", "compile", "training", "evaluation", "checkpoint")
UNSEEN_MS = 86_400_000
"""A job that nobody ended and that is not seen for so long has no series any more."""
RATE_WINDOW_MS = 300_000
_BLINDNESS = ("blind", "no_beats")


@dataclass(frozen=True, slots=True)
class JobSight:
    """One job as it is exported. Ages are in seconds; None where nothing is known."""

    run: str
    state: Sight
    attempt: int = 0
    step: int | None = None
    loss: float | None = None
    progress_age: float | None = None
    silence: float | None = None
    missing: int | None = None
    heartbeats: tuple[tuple[str, float], ...] = ()
    phase: Phase | None = None
    findings: tuple[str, ...] = ()
    """The kinds of its open findings, each without its node."""
    loaded: int | None = None


def sight(run: str, job: Job, now_ms: int, *, forget_ms: int, sees: bool) -> JobSight | None:
    """The job as it is exported at `now_ms`, by append time; None if its series have ended.

    `sees`: this worker keeps up with its partition.
    """
    state = job.state
    if state.ended_ms is not None and now_ms - state.ended_ms > forget_ms:
        return None
    nodes = {name: node for name, node in job.nodes.items() if node.incarnation == state.incarnation}
    heard_ms = max((node.pulse.last_ms for node in nodes.values()), default=state.started_ms)
    if now_ms - max(heard_ms, state.shown_ms, state.started_ms) > UNSEEN_MS:
        return None
    live = {name: node for name, node in nodes.items() if not node.final}
    present = [node for node in live.values() if now_ms < node.pulse.missing_at()]
    over = state.ended_ms is not None
    return JobSight(
        run=run,
        state=_state(state, bool(present), sees=sees),
        attempt=state.attempt,
        step=state.step,
        loss=state.losses.losses[-1] if state.losses.losses else None,
        progress_age=None if over else _age(max(state.shown_ms, state.started_ms), now_ms),
        silence=min((node.pulse.silence for node in present), default=None),
        missing=None if over else max(0, state.nodes - (len(nodes) - len(live)) - len(present)),
        heartbeats=() if over else tuple(sorted((name, _heard(node, now_ms)) for name, node in live.items())),
        phase=None if over else state.phase,
        findings=() if over else tuple(sorted(kind.partition(":")[0] for kind in state.findings)),
        loaded=state.checkpoint_step,
    )


def unseen(run: str) -> JobSight:
    """A job of which this worker knows only that it is to be watched."""
    return JobSight(run, "unknown")


def _state(state: JobState, present: bool, *, sees: bool) -> Sight:
    incident = state.incident
    if incident is not None and incident.state in ("ended", "settled"):
        return "over" if incident.verdict.state == "healthy" else "failed"
    if state.ended_ms is not None:
        return "over"
    blind = any(kind in state.findings for kind in _BLINDNESS) or not state.quorum_held
    if not sees or blind or not present:
        return "unknown"
    return "watched"


def _heard(node: NodeState, now_ms: int) -> float:
    return _age(node.pulse.last_ms, now_ms)


def _age(then_ms: int, now_ms: int) -> float:
    return max(0, now_ms - then_ms) / 1000


@dataclass(slots=True)
class StepRate:
    """Steps a second of one attempt, from what was seen of it within `RATE_WINDOW_MS`."""

    attempt: int = 0
    seen: list[tuple[int, int]] = field(default_factory=list)
    """(append time, step), oldest first."""

    def look(self, attempt: int, step: int | None, now_ms: int) -> float | None:
        """Add one look; the steps a second, or None before two looks a second apart."""
        if attempt != self.attempt or (self.seen and step is not None and step < self.seen[-1][1]):
            self.attempt, self.seen = attempt, []
        if step is None:
            return None
        if not self.seen or now_ms - self.seen[-1][0] >= 1000:
            self.seen.append((now_ms, step))
        while len(self.seen) > 2 and now_ms - self.seen[0][0] > RATE_WINDOW_MS:
            self.seen.pop(0)
        (began_ms, first), (last_ms, last) = self.seen[0], self.seen[-1]
        return 1000 * (last - first) / (last_ms - began_ms) if last_ms > began_ms else None
