"""The verdict: what ended, or hung, an attempt, and which line proves it. Pure.

The cause is the earliest line or scheduler's fact that is no consequence; where only consequences stand,
the earliest of them, with its own type and transience (`docs/design.md`, Verdict).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from midwatch.agents.detect.diagnosis.collectives import went_apart
from midwatch.agents.detect.diagnosis.hindsight import explanation, is_bare_end
from midwatch.agents.detect.diagnosis.peer_exits import after_peer_exits
from midwatch.agents.detect.line_order import earlier, in_order, maybe_earlier
from midwatch.streams.lines.log_levels import is_quiet
from midwatch.streams.records import Hit, Line, Mode, Phase, SchedulerFact, Verdict
from midwatch.streams.records.error_types import family

_EXCEPTION = re.compile(r"(?:^|[\s\])>:])(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception): (.+)$")
_BARE = re.compile(r"(?:^|[\s.])[A-Z]\w*(?:Error|Exception):?\s*$")
_ENDINGS = ("exit_code", "signal_name", "exception")
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
    """How the attempt ended, beside its lines. `silence`: seconds counted, if it hangs. `left`: the latest
    line in which a process said that it is done, while the job as a whole was not. `noted`: lines since the
    last steps that are no evidence by themselves. `trained`: that it made a step is known, by its number or
    by what else only a loop that trains prints."""

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
    trained: bool = False

    def made_a_step(self) -> bool:
        """Whether the same start is known to work."""
        return self.trained or self.step is not None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The verdict and the lines that speak for it, the root first, then by time."""

    verdict: Verdict
    evidence: tuple[Hit, ...]


def _weight(hit: Hit) -> int:
    """A specific cause, then one that knows only that something failed, then consequences alike; last come
    summaries that do not even say of what kind, and among them those that do not say how it ended."""
    if hit.role == "cause" and not _announces(hit):
        return int(hit.fallback)
    if not hit.fallback:
        return 2
    return 3 + (1 + _mute(hit)) * _vague(hit)


def _announces(hit: Hit) -> bool:
    """An exception whose message ends in a colon hands another one on, which is printed below it. Behind the
    colon of an errno stands only a path, and a page that wraps its lines takes that to the next one."""
    if not hit.fallback or hit.error_type != "exception":
        return False
    message = _message(hit)
    return message.endswith(":") and not message.startswith("[Errno ")


def _vague(hit: Hit) -> bool:
    """Of two rules on one line the one that says more comes first."""
    return hit.error_type in ("exception", "unknown", "")


def _mute(hit: Hit) -> bool:
    """A launcher that stops the others does not say how the first one ended."""
    return not any(name in hit.captures for name in _ENDINGS)


def precedence(hit: Hit) -> tuple[int, tuple[float, str, str, int], bool]:
    """Of two lines the one with the lower value is rather the root."""
    return _weight(hit), in_order(hit), _vague(hit)


def root_of(hits: Sequence[Hit]) -> Hit | None:
    """The line that the verdict rests on, or None: of the lines that weigh most the earliest."""
    telling = [h for h in hits if h.role in ("cause", "consequence") and not _cleaned_up(h, hits)]
    telling = _without_echoes(telling)
    root = min(telling, key=precedence, default=None)
    return root and _innermost(_own_words(root, telling), telling)


def _cleaned_up(hit: Hit, hits: Sequence[Hit]) -> bool:
    """srun cancels a step once a task of it failed, or once a person at its terminal interrupted it, and
    kills the tasks that are left: then nobody else did."""
    killed = hit.error_type == "host_oom" and hit.fallback
    if hit.subsystem != "slurm" or not (killed or hit.error_type == "cancelled"):
        return False
    if "id" in hit.captures and _ended_by_srun(hit.captures["id"], hits):
        return True
    return any(
        earlier(h.line, hit.line) and (h.error_type == "user_interrupt" or "task" in h.captures)
        for h in hits
        if h.subsystem in ("slurm", "user") and h.role == "consequence"
    )


def _ended_by_srun(step: str, hits: Sequence[Hit]) -> bool:
    """Whether srun itself ended the step, by its own words: a task failed, then it set about it. Nobody else
    had ended it before, of which srun would have told. The node writes of the cancel to wherever the tasks'
    output goes, so neither the place of its line nor the second that it prints tells which came first."""
    of_srun = [hit for hit in hits if hit.subsystem == "slurm" and hit.role == "consequence"]
    for ended in of_srun:
        if ended.captures.get("ended") != step:
            continue
        above = [h for h in of_srun if h.line.file == ended.line.file and earlier(h.line, ended.line)]
        if any("task" in h.captures for h in above) and not any("aborted" in h.captures for h in above):
            return True
    return False


def _without_echoes(telling: Sequence[Hit]) -> list[Hit]:
    """Without what a process does while it dies of something else: it crashes behind an error that it
    reported, or stumbles behind the interrupt that ended it. Of such lines only those that know no more than
    that something failed."""
    first: dict[tuple[str, str], Hit] = {}
    reported: dict[tuple[str, str], Hit] = {}
    for hit in sorted(telling, key=in_order):
        first.setdefault(hit.line.file, hit)
        if hit.role == "consequence" and not hit.fallback:
            reported.setdefault(hit.line.file, hit)
    return [hit for hit in telling if not _echoes(hit, first[hit.line.file], reported.get(hit.line.file))]


def _echoes(hit: Hit, first: Hit, reported: Hit | None) -> bool:
    if not hit.fallback or hit.role != "cause":
        return False
    if hit.error_type == "native_crash":
        return reported is not None and earlier(reported.line, hit.line)
    interrupted = first.subsystem == "user" and _speaker(first) == _speaker(hit)
    return hit.error_type == "exception" and interrupted and earlier(first.line, hit.line)


_NOBODY = (None, None)


def _speaker(hit: Hit) -> tuple[int | None, int | None]:
    return (hit.line.rank, hit.line.claimed_rank)


def _own_words(root: Hit, telling: Sequence[Hit]) -> Hit:
    """The exception itself, where the root only announces it: a logger repeats its message beforehand. Where
    it is a bare name, the wrapper that says the same name and whose it was."""
    if _message(root) or is_quiet(root.line.text.encode()):
        return root
    if _BARE.search(root.line.text):
        name = root.line.text.rpartition(" ")[2].rpartition(".")[2].rstrip(":")
        return next((h for h in telling if h.captures.get("exception") == name), root)
    said = (h for h in telling if h.rule == root.rule and h.line.file == root.line.file)
    return next((h for h in said if (message := _message(h)) and message in root.line.text), root)


_STACK_LINES = 12  # from one entry of a library's error stack to the next, at most


def _innermost(root: Hit, telling: Sequence[Hit]) -> Hit:
    """Of a library's error stack the deepest entry; chunks may have brought more than that one."""
    for hit in sorted(telling, key=in_order):
        beside = hit.rule == root.rule and hit.line.file == root.line.file
        if not beside or not 0 < hit.line.number - root.line.number <= _STACK_LINES:
            continue
        if _depth(hit) == _depth(root) + 1 > 0:
            root = hit
    return root


def _depth(hit: Hit) -> int:
    return int(hit.captures.get("depth", "-2"))


def _message(hit: Hit) -> str:
    found = _EXCEPTION.search(hit.line.text)
    return found[1].strip() if found else ""


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
NO_STEP_SEEN = (
    "no training step was seen, so nothing shows that the same start would work; if it had trained, name its "
    "progress line in a rule with `role: progress` and a group `step`, in a folder of `rules.directories`"
)
_TRANSIENT_FACTS = ("preemption", "hardware", "slurm_failure", "ray_node_died")


def diagnose(hits: Sequence[Hit], ending: AttemptEnd) -> Diagnosis:
    """The verdict on an attempt that ended or hangs."""
    hits = after_peer_exits(hits, ending.noted)
    root = _explained(_who_left(root_of(hits), ending.left), ending)
    others = sorted((hit for hit in hits if hit is not root), key=in_order)
    evidence = ((root,) if root else ()) + tuple(others[:15])
    return Diagnosis(_out_of_step(_judge(root, ending), hits), evidence)


def _judge(root: Hit | None, ending: AttemptEnd) -> Verdict:
    said, mode = ending.scheduler, _mode(ending, root)
    telling = said is not None and _tells(said)
    if mode == "success" and not _stopped_short(ending):
        return _verdict(ending, "success", "healthy", said=_StandIn(error_type=""))
    if root is not None and (root.role == "cause" or not telling):
        return _unproven(_shown(_verdict(ending, mode, "failed", root=root), ending), root, ending)
    if said is not None and telling:
        transient = True if said.error_type in _TRANSIENT_FACTS else None
        fact = _StandIn(said.error_type, transient, said.cluster or "slurm", _spoken(said))
        return _verdict(ending, mode, "failed", said=fact)
    if ending.silence is not None:
        hang = _StandIn("hang", True if ending.made_a_step() else None, remedy=_LOOK_AT_THE_LAGGARD)
        doubt = "" if ending.made_a_step() else NO_STEP_SEEN
        return replace(_shown(_verdict(ending, "stall", "failed", said=hang), ending), doubt=doubt)
    if mode == "success":
        short = (
            f"it ended without an error at step {ending.step} of {ending.total}: look at the job's own log"
        )
        return _verdict(ending, "ended", "unknown", said=_StandIn(remedy=short))
    error_type = said.error_type if said and said.error_type else "unknown"
    fact = _StandIn(error_type, line=_spoken(said) if said else "", remedy=_LOOK_ELSEWHERE)
    state: _State = "failed" if said and (said.exit_code or said.signal) else "unknown"
    return _verdict(ending, mode, state, said=fact)


_LEFT_ALONE = (
    "One process ended its part while the others went on and waited for it: let all of them decide together, "
    "from a value that is reduced over them."
)


def _who_left(root: Hit | None, left: Hit | None) -> Hit | None:
    """Where nothing is known but that the others of a collective were left alone, who left them is why."""
    if root is None or left is None or root.role == "cause" or family(root.error_type) != "comms":
        return root
    speakers = {_speaker(root), _speaker(left)}
    if not maybe_earlier(left.line, root.line) or (len(speakers) == 1 and _NOBODY not in speakers):
        return root
    return replace(left, role="cause", error_type="exception", transient=False, mode=None, remedy=_LEFT_ALONE)


def _explained(root: Hit | None, ending: AttemptEnd) -> Hit | None:
    """Where the end alone is known, and nobody outside of the job says why, what was noted before it."""
    said = ending.scheduler
    if not ending.noted or ending.succeeded or ending.silence is not None or (said and _tells(said)):
        return root
    if root is None:
        failed = said is not None and bool(said.exit_code or said.signal)
        return explanation(ending.noted, None) if failed else None
    return (explanation(ending.noted, root) if is_bare_end(root) else None) or root


def _tells(said: SchedulerFact) -> bool:
    """Whether the scheduler knows more than that it ended."""
    return said.error_type not in ("", "slurm_failure", "unknown")


def _shown(verdict: Verdict, ending: AttemptEnd) -> Verdict:
    """A hang is shown by the last sign of progress, not by who lost patience with it."""
    line = ending.progress
    if verdict.error_type != "hang" or line is None:
        return verdict
    return replace(
        verdict,
        root_line=line.text,
        root_file=line.path,
        root_line_number=line.number,
        node=line.node,
        rank=line.rank if line.rank is not None else line.claimed_rank,
    )


def _unproven(verdict: Verdict, root: Hit, ending: AttemptEnd) -> Verdict:
    """Who waits for a peer, was left by one, or hangs, says nothing of why. Where the run never made a step
    either, nothing shows that another start would go better."""
    left = verdict.family == "comms" and (root.fallback or root.error_type != "nccl")
    waited = verdict.family == "stall" or (root.role == "consequence" and left)
    if waited and not ending.made_a_step() and verdict.transient:
        return replace(verdict, transient=None, doubt=NO_STEP_SEEN)
    return verdict


def _out_of_step(verdict: Verdict, hits: Sequence[Hit]) -> Verdict:
    """Ranks that waited in different collectives went apart by the program's own doing."""
    if verdict.family != "comms" or not verdict.transient or not (kinds := went_apart(hits)):
        return verdict
    doubt = f"ranks waited in different collectives ({', '.join(kinds)}): the same start may go apart again"
    return replace(verdict, transient=None, doubt=doubt)


def _stopped_short(ending: AttemptEnd) -> bool:
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
    ending: AttemptEnd, mode: Mode, state: _State, *, root: Hit | None = None, said: _StandIn | None = None
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
        fact = said or _StandIn()
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
