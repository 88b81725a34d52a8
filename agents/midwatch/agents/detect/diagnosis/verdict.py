"""The verdict: why an attempt ended or hangs, and which line proves it. Pure.

The cause is the earliest line or scheduler's fact that is no consequence. If all lines are consequences, the
cause is the earliest of them, with its own type and transience (`docs/design.md`, Verdict).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from midwatch.agents.detect.diagnosis.candidates import NotRoot, RootCandidate, standing_aside
from midwatch.agents.detect.diagnosis.collectives import out_of_step
from midwatch.agents.detect.diagnosis.hindsight import explanation, is_bare_end
from midwatch.agents.detect.diagnosis.noted_lines import (
    card_not_started,
    exit_before_the_wait,
    exit_of_the_peer,
    failed_before_the_wait,
    port_that_fell,
    process_that_left,
    service_that_answered,
    waited_for_gpus,
    word_of_the_build,
    words_of_nccl,
)
from midwatch.agents.detect.diagnosis.proof_line import proven_by
from midwatch.agents.detect.diagnosis.relations.closing import of_teardown
from midwatch.agents.detect.diagnosis.relations.peer_exits import after_peer_exits
from midwatch.agents.detect.diagnosis.relations.related import related
from midwatch.agents.detect.diagnosis.relations.surroundings import Surroundings
from midwatch.agents.detect.diagnosis.root_line import Order, RootChoice, choose, features, rivals
from midwatch.agents.detect.diagnosis.scheduler_word import (
    is_specific,
    kind_alone,
    may_pass,
    printed_by_the_end,
    told,
)
from midwatch.agents.detect.diagnosis.time_limit import with_way_on
from midwatch.agents.detect.diagnosis.transience import (
    NO_STEP_SEEN,
    as_proven,
    beside_a_kill,
    beside_a_missing_command,
)
from midwatch.agents.detect.line_order import in_order
from midwatch.streams.records import Hit, Line, Mode, Phase, Rival, SchedulerFact, Verdict
from midwatch.streams.records.error_types import family

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
class AttemptEnd:
    """How the attempt ended, beyond its lines.

    `silence`: counted seconds, if the attempt hangs. `left`: the latest line in which a process reported its
    end while the job as a whole went on. `noted`: lines since the last steps, no evidence by themselves.
    `checkpoints`: the directory of the job's checkpoints; "" if its spec names none. `trained`: the attempt
    made a step, by its number or by another line that only a training loop prints. `success`: the line in
    which the job reported it. `worked_before`: an earlier attempt that began in the same way made a step.
    """

    scheduler: SchedulerFact | None
    silence: float | None
    phase: Phase
    step: int | None
    total: int | None
    succeeded: bool
    complete: bool
    given_up: tuple[str, ...]
    bundle: str
    progress: Line | None = None
    left: Hit | None = None
    noted: tuple[Hit, ...] = ()
    checkpoints: str = ""
    trained: bool = False
    success: Line | None = None
    worked_before: bool = False

    def made_a_step(self) -> bool:
        """Whether the attempt made a step, so the same start is known to work."""
        return self.trained or self.step is not None

    def is_known_to_work(self) -> bool:
        """Whether such a start made a step, in this attempt or before."""
        return self.made_a_step() or self.worked_before


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The verdict and its evidence: the root line first, then other lines by time.

    `rivals`: the other candidates, each with the reason why it is not the root.
    """

    verdict: Verdict
    evidence: tuple[Hit, ...]
    rivals: tuple[Rival, ...] = ()


def _mode(ending: AttemptEnd, root: Hit | None) -> Mode:
    if ending.silence is not None and (ending.scheduler is None or ending.scheduler.by_person):
        return "stall"
    if ending.scheduler and ending.scheduler.mode:
        return ending.scheduler.mode
    if root and root.mode and root.mode != "success":
        return root.mode
    return "crash" if root else "ended"


@dataclass(frozen=True, slots=True)
class _StandIn:
    """The root fields of a verdict that no line proves."""

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


def diagnose(hits: Sequence[Hit], ending: AttemptEnd, order: Order = features) -> Diagnosis:
    """The verdict on an attempt that ended or hangs. `order`: another one of root lines, for a comparison."""
    hits = sorted(hits, key=in_order)
    quiet = _ended_quietly(ending)
    over = quiet and not _stopped_short(ending)
    around = Surroundings(hits, ending.noted, over=over)
    candidates = related(around)
    if hits and quiet and (harmless := _harmless(_hits_of(candidates), ending)):
        closing = [(each.hit, each.reason or NotRoot("closing")) for each in candidates]
        return Diagnosis(harmless, tuple(hits[:15]), rivals(closing, None))
    candidates = after_peer_exits(candidates, ending.noted)
    hits = _hits_of(candidates)
    choice = _with_noted(choose([*candidates, *standing_aside(ending.noted)], order), ending, hits)
    root = choice.root
    evidence = sorted((hit for hit in hits if hit is not root), key=in_order)[:15]
    judged = beside_a_kill(out_of_step(_judge(root, hits, ending), hits), choice.others)
    judged = with_way_on(beside_a_missing_command(judged, choice.others), ending.checkpoints)
    if ending.succeeded and judged.state == "failed":
        judged = _after_success(judged, ending, hits)
    return Diagnosis(judged, tuple(([root] if root else []) + evidence), _rivals(choice, judged))


def _hits_of(candidates: Sequence[RootCandidate]) -> list[Hit]:
    """The hits that are still evidence of a failure."""
    return [candidate.hit for candidate in candidates if candidate.hit.role != "context"]


def _with_noted(choice: RootChoice, ending: AttemptEnd, hits: Sequence[Hit]) -> RootChoice:
    """The choice, with the noted line as root that tells the same failure better."""
    choice = choice.told_by(process_that_left(choice.root, ending.left), "process left")
    fact = ending.scheduler
    failed = fact is not None and bool(fact.exit_code or fact.signal) and not is_specific(fact)
    before = failed_before_the_wait(choice.root, ending.noted, failed=failed)
    choice = choice.told_by(before, "a wait")
    waited = choice.root
    choice = choice.told_by(exit_before_the_wait(choice.root, hits), "process failed")
    choice = choice.told_by(exit_of_the_peer(choice.root, hits), "process failed")
    communicated = choice.root is not waited
    choice = choice.told_by(waited_for_gpus(choice.root, ending.noted), "explained")
    choice = choice.told_by(port_that_fell(choice.root, ending.noted), "port fell")
    choice = choice.told_by(service_that_answered(choice.root, hits), "service away")
    if not communicated:  # else what was noted at the start did not end the process
        choice = choice.told_by(_explained(choice.root, ending), "explained")
    choice = choice.told_by(word_of_the_build(choice.root, ending.noted), "a build")
    choice = choice.told_by(card_not_started(choice.root, ending.noted), "no card")
    return choice.told_by(words_of_nccl(choice.root, ending.noted), "NCCL's own word")


def _rivals(choice: RootChoice, verdict: Verdict) -> tuple[Rival, ...]:
    """The candidates that are not the root of this verdict. The verdict may rest on no line of them.

    Where nothing failed, nobody asks after lines that report no failure.
    """
    if verdict.state == "healthy":
        choice = replace(choice, others=tuple(pair for pair in choice.others if not pair[0].aside))
    if verdict.rule and verdict.error_type != "hang":
        return rivals(choice.others, choice.root)
    hang = "hang" if verdict.error_type == "hang" else "scheduler tells more"
    return rivals(choice.without_root("success" if verdict.mode == "success" else hang), None)


def _harmless(candidates: Sequence[Hit], ending: AttemptEnd) -> Verdict | None:
    """The verdict on harmless lines: all explained away, or the job's own closing after its success."""
    if not candidates:
        return _verdict(ending, "ended", "healthy", stand_in=_StandIn(error_type=""))
    if ending.succeeded and of_teardown(candidates):
        closed = _StandIn(error_type="", remedy=_CLOSED_BADLY)
        return _verdict(ending, "success", "healthy", stand_in=closed)
    return None


_CLOSED_BADLY = (
    "The job reported its success before these lines. They come from its closing; nothing has to run again."
)


def _after_success(judged: Verdict, ending: AttemptEnd, hits: Sequence[Hit]) -> Verdict:
    """The verdict on an end behind the job's word of success. No whole training is worth such an end."""
    if of_teardown(hits):
        transient = False if hits or judged.transient else None
    else:
        transient = None if judged.transient else judged.transient
    return replace(judged, transient=transient, remedy=_behind_success(judged.remedy, ending.success, hits))


def _behind_success(remedy: str, success: Line | None, hits: Sequence[Hit]) -> str:
    """The remedy where the job had reported its success before it failed."""
    said = f" in {success.path}:{success.number}" if success is not None else ""
    said = f"The job had reported its success{said}. "
    if not hits:
        return f"{said}See what its script does behind the training, which needs no further start."
    if of_teardown(hits):
        return f"{said}These lines come from its closing; nothing has to run again."
    return f"{remedy.rstrip('.')}. {said}Where its results are complete, nothing has to run again."


def _ended_quietly(ending: AttemptEnd) -> bool:
    """Whether the end is known, and neither the scheduler nor a hang speaks of a failure."""
    fact = ending.scheduler
    if fact is None or ending.silence is not None:
        return False
    return not (fact.exit_code or fact.signal or fact.mode or is_specific(fact))


def _judge(root: Hit | None, hits: Sequence[Hit], ending: AttemptEnd) -> Verdict:
    fact, mode = ending.scheduler, _mode(ending, root)
    specific = fact is not None and is_specific(fact)
    if mode == "success" and not _stopped_short(ending):
        return _verdict(ending, "success", "healthy", stand_in=_StandIn(error_type=""))
    if mode == "success" and root is not None:
        mode = root.mode or "crash"  # exit code 0 is no proof, and a line shows a failure
    vague = root is not None and fact is not None and printed_by_the_end(root, fact)
    if root is not None and not vague and (root.role == "cause" or not specific):
        return as_proven(
            _at_progress(_verdict(ending, mode, "failed", root=root), ending),
            root,
            hits,
            worked=ending.made_a_step(),
            step=ending.step,
            worked_before=ending.worked_before,
        )
    if fact is not None and specific:
        stand_in = _StandIn(fact.error_type, may_pass(fact), fact.cluster or "slurm", told(fact))
        return _verdict(ending, mode, "failed", stand_in=stand_in)
    if ending.silence is not None:
        known = ending.is_known_to_work()
        hang = _StandIn("hang", True if known else None, remedy=_LOOK_AT_THE_LAGGARD)
        doubt = "" if known else NO_STEP_SEEN
        return replace(_at_progress(_verdict(ending, "stall", "failed", stand_in=hang), ending), doubt=doubt)
    if mode == "success":
        short = (
            f"it ended without an error at step {ending.step} of {ending.total}: look at the job's own log"
        )
        return _verdict(ending, "ended", "unknown", stand_in=_StandIn(remedy=short))
    error_type = kind_alone(fact) if fact else "unknown"
    stand_in = _StandIn(error_type, line=told(fact) if fact else "", remedy=_LOOK_ELSEWHERE)
    known = fact is not None and bool(fact.exit_code or fact.signal or fact.mode in ("timeout", "crash"))
    return _verdict(ending, mode, "failed" if known else "unknown", stand_in=stand_in)


def _explained(root: Hit | None, ending: AttemptEnd) -> Hit | None:
    """The noted line that explains the end, if root and scheduler show only that the attempt ended."""
    fact = ending.scheduler
    if not ending.noted or ending.succeeded or ending.silence is not None or (fact and is_specific(fact)):
        return root
    if root is None:
        failed = fact is not None and bool(fact.exit_code or fact.signal)
        return explanation(ending.noted, None) if failed else None
    return (explanation(ending.noted, root) if is_bare_end(root) else None) or root


def _at_progress(verdict: Verdict, ending: AttemptEnd) -> Verdict:
    """The verdict on a hang with the last progress line as its root line, not the line of a timeout."""
    line = ending.progress
    return verdict if verdict.error_type != "hang" or line is None else proven_by(verdict, line)


def _stopped_short(ending: AttemptEnd) -> bool:
    """Whether the job ended before its last step without a line of success. Then exit code 0 is no proof."""
    if ending.succeeded or ending.step is None or ending.total is None:
        return False
    return ending.step < ending.total


def _verdict(
    ending: AttemptEnd,
    mode: Mode,
    state: _State,
    *,
    root: Hit | None = None,
    stand_in: _StandIn | None = None,
) -> Verdict:
    base = Verdict(
        state=state,
        mode=mode,
        step=ending.step,
        phase=ending.phase,
        bundle=ending.bundle,
        complete=ending.complete,
        given_up=ending.given_up,
    )
    if root is None:
        stand_in = stand_in or _StandIn()
        return replace(
            base,
            error_type=stand_in.error_type,
            family=family(stand_in.error_type),
            subsystem=stand_in.subsystem,
            transient=stand_in.transient,
            root_line=stand_in.line,
            remedy=stand_in.remedy,
        )
    kind = root.error_type or "unknown"
    return replace(
        proven_by(base, root.line),
        error_type=kind,
        family=family(kind),
        subsystem=root.subsystem,
        transient=root.transient,
        remedy=root.remedy,
        rule=root.rule,
        quantities={k: v for k, v in root.captures.items() if k in _QUANTITIES},
    )
