"""The verdict: what ended, or hung, an attempt, and which line proves it. Pure.

The cause is the earliest line or scheduler's fact that is no consequence; where only consequences stand,
the earliest of them, with its own type and transience (DESIGN 5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from midwatch.agents.error_types import family
from midwatch.streams.records import Hit, Mode, Phase, SchedulerFact, Verdict

_QUANTITIES = (
    "size",
    "capacity",
    "free",
    "allocated",
    "limit",
    "milliseconds",
    "seconds",
    "exit_code",
    "signal",
)


@dataclass(frozen=True, slots=True)
class Ending:
    """How the attempt ended, beside its lines. `silence`: seconds counted, if it hangs."""

    scheduler: SchedulerFact | None
    silence: float | None
    phase: Phase
    step: int | None
    total: int | None
    succeeded: bool
    complete: bool
    given_up: tuple[str, ...]
    bundle: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The verdict and the lines that speak for it, the root first, then by time."""

    verdict: Verdict
    evidence: tuple[Hit, ...]


def _order(hit: Hit) -> tuple[float, str, str, int]:
    return (hit.line.time, hit.line.node, hit.line.path, hit.line.number)


def _specific(hit: Hit) -> int:
    """Of two rules on one line the one that says more comes first; the bare exception is a fallback."""
    return 1 if hit.error_type in ("exception", "unknown", "") else 0


def root_of(hits: Sequence[Hit]) -> Hit | None:
    """The line that the verdict rests on, or None."""
    causes = [h for h in hits if h.role == "cause"]
    consequences = [h for h in hits if h.role == "consequence"]
    for group in (causes, consequences):
        if group:
            first = min(group, key=_order)
            same_line = [h for h in group if _order(h) == _order(first)]
            return min(same_line, key=_specific)
    return None


def _mode(ending: Ending, root: Hit | None) -> Mode:
    if ending.silence is not None and (ending.scheduler is None or ending.scheduler.by_person):
        return "stall"
    if ending.scheduler and ending.scheduler.mode:
        return ending.scheduler.mode
    if root and root.mode and root.mode != "success":
        return root.mode
    return "crash" if root else "ended"


def diagnose(hits: Sequence[Hit], ending: Ending) -> Diagnosis:
    """The verdict on an attempt that ended or hangs."""
    root = root_of(hits)
    said = ending.scheduler
    mode = _mode(ending, root)
    evidence = tuple(sorted((h for h in hits if h is not root), key=_order))
    evidence = ((root,) if root else ()) + evidence[:15]
    if mode == "success" and not _stopped_short(ending):
        return Diagnosis(
            _verdict(ending, None, "success", "healthy", error_type="", transient=None), evidence
        )
    specific_fact = said is not None and said.error_type not in ("", "slurm_failure", "unknown")
    if root is not None and (root.role == "cause" or not specific_fact):
        return Diagnosis(_verdict(ending, root, mode, "failed"), evidence)
    if said is not None and specific_fact:
        transient = said.error_type in ("preemption", "hardware", "slurm_failure", "ray_node_died")
        verdict = _verdict(
            ending,
            None,
            mode,
            "failed",
            error_type=said.error_type,
            transient=transient if transient else None,
            subsystem=said.cluster or "slurm",
            root_line=_spoken(said),
        )
        return Diagnosis(verdict, evidence)
    if ending.silence is not None:
        verdict = _verdict(
            ending,
            None,
            "stall",
            "failed",
            error_type="hang",
            transient=True if ending.step is not None else None,
            remedy="see which rank lags; if it hangs again at this step, look at that node and the data there",
        )
        return Diagnosis(verdict, evidence)
    if mode == "success":
        remedy = (
            f"it ended without an error at step {ending.step} of {ending.total}: look at the job's own log"
        )
        return Diagnosis(
            _verdict(ending, None, "ended", "unknown", error_type="unknown", transient=None, remedy=remedy),
            evidence,
        )
    error_type = said.error_type if said and said.error_type else "unknown"
    verdict = _verdict(
        ending,
        None,
        mode,
        "failed" if said and (said.exit_code or said.signal) else "unknown",
        error_type=error_type,
        transient=None,
        root_line=_spoken(said) if said else "",
        remedy="no line of the log says why: see the node's kernel log and the scheduler's record of the job",
    )
    return Diagnosis(verdict, evidence)


def _stopped_short(ending: Ending) -> bool:
    """Exit code 0 proves nothing if the job meant to go further and never said that it was done."""
    if ending.succeeded or ending.step is None or ending.total is None:
        return False
    return ending.step < ending.total


def _spoken(said: SchedulerFact) -> str:
    how = said.reason or said.new
    code = f", exit code {said.exit_code}" if said.exit_code is not None else ""
    signal = f", signal {said.signal}" if said.signal else ""
    return f"{said.cluster or 'scheduler'}: {said.native_id} {said.old} → {said.new} ({how}{code}{signal})"


def _verdict(
    ending: Ending,
    root: Hit | None,
    mode: Mode,
    state: str,
    *,
    error_type: str = "unknown",
    transient: bool | None = None,
    subsystem: str = "",
    root_line: str = "",
    remedy: str = "",
) -> Verdict:
    kind = root.error_type or "unknown" if root else error_type
    rank: int | None = None
    if root:
        rank = root.line.rank if root.line.rank is not None else root.line.claimed_rank
    return Verdict(
        state="failed" if state == "failed" else "healthy" if state == "healthy" else "unknown",
        mode=mode,
        error_type=kind,
        family=family(kind),
        subsystem=root.subsystem if root else subsystem,
        transient=root.transient if root else transient,
        root_line=root.line.text if root else root_line,
        root_file=root.line.path if root else "",
        root_line_number=root.line.number if root else None,
        node=root.line.node if root else "",
        rank=rank,
        step=ending.step,
        phase=ending.phase,
        remedy=root.remedy if root else remedy,
        rule=root.rule if root else "",
        bundle=ending.bundle,
        quantities={k: v for k, v in root.captures.items() if k in _QUANTITIES} if root else {},
        complete=ending.complete,
        given_up=ending.given_up,
    )
