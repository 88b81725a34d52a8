"""The verdict: what ended, or hung, an attempt, and which line proves it. Pure.

The cause is the earliest line or scheduler's fact that is no consequence; where only consequences stand,
the earliest of them, with its own type and transience (DESIGN 5).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from midwatch.agents.error_types import family
from midwatch.agents.log_levels import is_quiet
from midwatch.streams.records import Hit, Mode, Phase, SchedulerFact, Verdict

_EXCEPTION = re.compile(r"(?:^|[\s\])>:])(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception): (.+)$")
_State = Literal["failed", "healthy", "unknown"]
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


def _weight(hit: Hit) -> int:
    """A specific cause, then one that knows only that something failed, then consequences alike; last come
    summaries that do not even say of what kind."""
    if hit.role == "cause":
        return int(hit.fallback)
    return 2 + hit.fallback * (1 + _vague(hit))


def _vague(hit: Hit) -> bool:
    """Of two rules on one line the one that says more comes first."""
    return hit.error_type in ("exception", "unknown", "")


def root_of(hits: Sequence[Hit]) -> Hit | None:
    """The line that the verdict rests on, or None: of the lines that weigh most the earliest."""
    telling = [h for h in hits if h.role in ("cause", "consequence") and not _cleaned_up(h, hits)]
    root = min(telling, key=lambda hit: (_weight(hit), _order(hit), _vague(hit)), default=None)
    return root and _own_words(root, telling)


def _cleaned_up(hit: Hit, hits: Sequence[Hit]) -> bool:
    """srun cancels a step once a task of it failed: then nobody else did."""
    if hit.error_type != "cancelled" or hit.subsystem != "slurm":
        return False
    return any("task" in h.captures and _order(h) < _order(hit) for h in hits if h.subsystem == "slurm")


def _own_words(root: Hit, telling: Sequence[Hit]) -> Hit:
    """The exception itself, where the root only announces it: a logger repeats its message beforehand."""
    if _message(root) or is_quiet(root.line.text.encode()):
        return root
    said = (h for h in telling if h.rule == root.rule and h.line.path == root.line.path)
    return next((h for h in said if (message := _message(h)) and message in root.line.text), root)


def _message(hit: Hit) -> str:
    found = _EXCEPTION.search(hit.line.text)
    return found[1].strip() if found else ""


def _mode(ending: Ending, root: Hit | None) -> Mode:
    if ending.silence is not None and (ending.scheduler is None or ending.scheduler.by_person):
        return "stall"
    if ending.scheduler and ending.scheduler.mode:
        return ending.scheduler.mode
    if root and root.mode and root.mode != "success":
        return root.mode
    return "crash" if root else "ended"


@dataclass(frozen=True, slots=True)
class _Said:
    """What stands in for a root line where no line is the root."""

    error_type: str = "unknown"
    transient: bool | None = None
    subsystem: str = ""
    line: str = ""
    remedy: str = ""


DEBUG_VARIABLES = (
    "LOGLEVEL=DEBUG, NCCL_DEBUG=INFO, TORCH_DISTRIBUTED_DEBUG=DETAIL and TORCHELASTIC_ERROR_FILE in the "
    "environment of the next start tell more"
)
_LOOK_ELSEWHERE = (
    "no line of the log says why: see the node's kernel log and the scheduler's record of the job; "
    f"{DEBUG_VARIABLES}"
)
_LOOK_AT_THE_LAGGARD = (
    "see which rank lags; if it hangs again at this step, look at that node and the data there"
)
_TRANSIENT_FACTS = ("preemption", "hardware", "slurm_failure", "ray_node_died")


def diagnose(hits: Sequence[Hit], ending: Ending) -> Diagnosis:
    """The verdict on an attempt that ended or hangs."""
    root = root_of(hits)
    others = sorted((hit for hit in hits if hit is not root), key=_order)
    evidence = ((root,) if root else ()) + tuple(others[:15])
    return Diagnosis(_judge(root, ending), evidence)


def _judge(root: Hit | None, ending: Ending) -> Verdict:
    said, mode = ending.scheduler, _mode(ending, root)
    telling = said is not None and said.error_type not in ("", "slurm_failure", "unknown")
    if mode == "success" and not _stopped_short(ending):
        return _verdict(ending, "success", "healthy", said=_Said(error_type=""))
    if root is not None and (root.role == "cause" or not telling):
        return _unproven(_verdict(ending, mode, "failed", root=root), root)
    if said is not None and telling:
        transient = True if said.error_type in _TRANSIENT_FACTS else None
        fact = _Said(said.error_type, transient, said.cluster or "slurm", _spoken(said))
        return _verdict(ending, mode, "failed", said=fact)
    if ending.silence is not None:
        hang = _Said("hang", True if ending.step is not None else None, remedy=_LOOK_AT_THE_LAGGARD)
        return _verdict(ending, "stall", "failed", said=hang)
    if mode == "success":
        short = (
            f"it ended without an error at step {ending.step} of {ending.total}: look at the job's own log"
        )
        return _verdict(ending, "ended", "unknown", said=_Said(remedy=short))
    error_type = said.error_type if said and said.error_type else "unknown"
    fact = _Said(error_type, line=_spoken(said) if said else "", remedy=_LOOK_ELSEWHERE)
    state: _State = "failed" if said and (said.exit_code or said.signal) else "unknown"
    return _verdict(ending, mode, state, said=fact)


def _unproven(verdict: Verdict, root: Hit) -> Verdict:
    """Who waits for a peer, or was left by one, says nothing of why. Where the run never made a step either,
    nothing shows that another start would go better."""
    waited = verdict.family == "comms" and (root.fallback or root.error_type != "nccl")
    if root.role == "consequence" and waited and verdict.step is None and verdict.transient:
        return replace(verdict, transient=None)
    return verdict


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
    ending: Ending, mode: Mode, state: _State, *, root: Hit | None = None, said: _Said | None = None
) -> Verdict:
    common = Verdict(
        state=state,
        mode=mode,
        step=ending.step,
        phase=ending.phase,
        bundle=ending.bundle,
        complete=ending.complete,
        given_up=ending.given_up,
    )
    if root is None:
        fact = said or _Said()
        return replace(
            common,
            error_type=fact.error_type,
            family=family(fact.error_type),
            subsystem=fact.subsystem,
            transient=fact.transient,
            root_line=fact.line,
            remedy=fact.remedy,
        )
    line, kind = root.line, root.error_type or "unknown"
    return replace(
        common,
        error_type=kind,
        family=family(kind),
        subsystem=root.subsystem,
        transient=root.transient,
        root_line=line.text,
        root_file=line.path,
        root_line_number=line.number,
        node=line.node,
        rank=line.rank if line.rank is not None else line.claimed_rank,
        remedy=root.remedy,
        rule=root.rule,
        quantities={k: v for k, v in root.captures.items() if k in _QUANTITIES},
    )
