"""Decides the next step of one claimed command, so that its effects happen exactly once. Pure.

Every pass looks at what the scheduler shows, does the next missing step, and looks again. The executor
may die between any two steps, run twice at once, and outlive a crash of the scheduler. Five rules make
that safe:

- The executor stores `Memory` before the act that it describes.
- It never believes the answer to an act.
- A new job stays held until the scheduler can no longer lose its record, so duplicate jobs never run.
- The old start is gone before the new one runs.
- Once a job was released, the executor never submits another one.

A scheduler that cannot hold jobs and forgets them in a restart adds a sixth rule. What was submitted under
one run of it is never submitted again under the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Literal

from midwatch.agents.schedulers.base import Hint, SchedulerEpoch, SchedulerJob, StartState

LIFELESS_S = 20.0  # after a heartbeat with a live process, an end that nobody saw is believed
REFUSALS = 3  # after so many refusals of an act the command fails


@dataclass(frozen=True, slots=True)
class Timing:
    """How long the reconciler waits before it trusts a look. Seconds."""

    settle: float  # until a submission has taken effect or died: over twice the scheduler's own timeout
    durable: float  # until the scheduler's disk holds a new job: a crash before loses the job and its id
    boot_settle: float  # a scheduler that has just started first kills orphans of its last run
    confirm: float  # for so long a crash of the scheduler can undo a release
    absent: float  # two looks so far apart, under one run of the scheduler, prove absence
    again: float  # before a cancel or a release is repeated
    force: float  # from the first cancel of the old start until one with force
    remembered: float  # for how long the scheduler shows ended jobs, at most
    forgets: bool = False  # a restart may lose jobs that ran


SLURM = Timing(settle=25, durable=6, boot_settle=8, confirm=7, absent=10, again=5, force=120, remembered=300)
LOCAL = Timing(settle=15, durable=0, boot_settle=0, confirm=0, absent=0, again=2, force=20, remembered=0)
RAY = Timing(
    settle=2, durable=0, boot_settle=0, confirm=0, absent=10, again=2, force=120, remembered=0, forgets=True
)


@dataclass(frozen=True, slots=True)
class PendingCommand:
    """What one accepted command requires. Times: seconds since 1970, the executor's clock."""

    old: str  # the incarnation to end; it must be gone before another one runs
    start_key: str  # "" to start nothing
    not_before: float = 0.0
    expires: float = float("inf")  # nothing begins after this; what has begun is finished


@dataclass(frozen=True, slots=True)
class Memory:
    """How far the command got. Times as in `PendingCommand`; 0 means never."""

    tried_at: float = 0.0
    winner: str = ""  # native id of the one job that may run
    winner_at: float = 0.0
    released_at: float = 0.0
    cancelled_at: float = 0.0
    first_cancelled_at: float = 0.0
    missing_at: float = 0.0
    missing_epoch: str = ""
    quiet_at: float = 0.0
    quiet_epoch: str = ""
    refusals: float = 0
    refusal: str = ""
    tried_epoch: str = ""  # the run of a forgetful scheduler that got the submission

    def words(self) -> dict[str, str]:
        """The fields as text, without the empty ones."""
        return {name: str(value) for name, value in asdict(self).items() if value}


def memory(words: Mapping[str, str]) -> Memory:
    """Reads what `Memory.words` gave. Ignores fields of a newer version."""
    texts = ("winner", "missing_epoch", "quiet_epoch", "refusal", "tried_epoch")
    known = [field.name for field in fields(Memory) if field.name in words]
    return Memory(**{name: words[name] if name in texts else float(words[name]) for name in known})  # type: ignore[arg-type] # each field is a text or a number, as `texts` says


@dataclass(frozen=True, slots=True)
class View:
    """One successful look at the scheduler. A failed look gives no view: wait and look again."""

    at: float
    epoch: SchedulerEpoch
    holds: bool  # whether the cluster can submit without running
    old: StartState
    ours: Sequence[SchedulerJob] = ()  # all jobs that carry the start key
    winner: StartState | None = None  # the state of `Memory.winner`, if it is not among `ours`
    successor: str = ""  # a later incarnation of the job that somebody else started


@dataclass(frozen=True, slots=True)
class Remember:
    """Store `memory`, then look again."""

    memory: Memory


@dataclass(frozen=True, slots=True)
class Submit:
    """Store `memory`, then submit a held job that depends on the end of the old one."""

    memory: Memory
    reason: str


@dataclass(frozen=True, slots=True)
class Release:
    """Store `memory`, then let the held job run."""

    memory: Memory
    incarnation: str
    reason: str


@dataclass(frozen=True, slots=True)
class Cancel:
    """Store `memory`, then cancel a start. `key`: the start key for a job of ours, "" for the old start."""

    memory: Memory
    incarnation: str
    key: str
    force: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Wait:
    seconds: float
    reason: str


@dataclass(frozen=True, slots=True)
class Finish:
    """The command needs nothing more.

    `untouched`: it is proven that the command made no job and ended nothing, so a later command may claim
    its effects.
    """

    result: Literal["done", "failed", "superseded", "expired"]
    reason: str
    incarnation: str = ""  # of the new job, if there is one
    untouched: bool = False


Step = Remember | Submit | Release | Cancel | Wait | Finish

_LIVE = ("held", "queued", "running", "ending")
_RELEASED = ("running", "ending")


def next_step(pending: PendingCommand, known: Memory, view: View, timing: Timing) -> Step:  # noqa: PLR0911 - one a rule
    """The next step of the command."""
    if view.at < pending.not_before:
        return Wait(pending.not_before - view.at, "it may not begin yet")
    if not pending.start_key:
        return _end_old(pending, known, view, timing) or Finish("done", f"the old start is {_word(view.old)}")
    foreign = view.successor not in {"", *(job.incarnation for job in view.ours)}
    if foreign and not known.released_at:
        return _give_way(pending, known, view)
    winner = next((job for job in view.ours if job.native_id == known.winner), None)
    rival = next((j for j in view.ours if j is not winner and j.state.kind in _RELEASED), None)
    if rival and not known.released_at and (winner is None or winner.state.kind in ("held", "queued")):
        return Remember(replace(known, winner=rival.native_id, winner_at=view.at, released_at=view.at))
    if winner is None:
        return _choose_or_submit(pending, known, view, timing)
    for duplicate in view.ours:
        if duplicate is not winner and duplicate.state.kind in ("held", "queued"):
            reason = f"duplicate of {winner.native_id}"
            return Cancel(known, duplicate.incarnation, pending.start_key, False, reason)
    step = _end_old(pending, known, view, timing)
    return step or _release(pending, known, view, timing, winner)


def answered(known: Memory, hint: Hint) -> Memory:
    """Counts a refusal of an act. Ignores every other answer, because the next look is more reliable."""
    if hint.result == "unsent":
        return replace(known, tried_epoch="")
    if hint.result != "refused":
        return known
    return replace(known, refusals=known.refusals + 1, refusal=hint.text)


def with_heartbeat(state: StartState, quiet: float) -> StartState:
    """The old start's state, `quiet` seconds after its last heartbeat with a live process.

    A head that lost sight of a job says that it is gone or has failed, without an exit code. The job's
    processes may live on for a while.
    """
    seen = state.exit_code is not None or state.signal is not None or state.word == "STOPPED"
    if quiet < LIFELESS_S and not seen and (state.over or state.kind == "absent"):
        return StartState("unknown", reason=f"a process of it was heard {quiet:.0f} s ago")
    return state


def late_duplicates(start_key: str, winner: str, jobs: Sequence[SchedulerJob]) -> tuple[str, ...]:
    """Incarnations to cancel after a command has finished: a slow submission may appear minutes later."""
    return tuple(
        job.incarnation
        for job in jobs
        if job.effect_key == start_key and job.native_id != winner and job.state.kind in ("held", "queued")
    )


def _choose_or_submit(  # noqa: PLR0911 - one a rule
    pending: PendingCommand, known: Memory, view: View, timing: Timing
) -> Step:
    """The step if no job is chosen, or if the scheduler does not show the chosen one."""
    if known.released_at:
        return _vanished(pending, known, view, timing)
    live = [job for job in view.ours if job.state.kind in _LIVE]
    ran = [job for job in view.ours if job.state.over and job.state.word != "CANCELLED"]
    if candidates := live or ran:
        chosen = min(candidates, key=_number)
        return Remember(replace(known, winner=chosen.native_id, winner_at=view.at, refusals=0))
    if known.refusals >= REFUSALS:
        return Finish("failed", known.refusal, untouched=not known.first_cancelled_at)
    pause = timing.again * known.refusals if known.refusals else timing.settle
    if known.tried_at and view.at - known.tried_at < pause:
        return Wait(pause - (view.at - known.tried_at), "an earlier submission may still take effect")
    if view.at > pending.expires and not known.tried_at:
        return Finish("expired", "it could not begin in time", untouched=not known.first_cancelled_at)
    if not view.holds and (step := _end_old(pending, known, view, timing)):
        return step
    if known.tried_epoch not in ("", view.epoch.name):
        return Finish(
            "failed",
            f"the scheduler was restarted as {view.epoch.name} and has forgotten what it was given as "
            f"{known.tried_epoch}: that start may have run, so there is no second one",
        )
    epoch = view.epoch.name if timing.forgets else ""
    memory = replace(known, tried_at=view.at, tried_epoch=epoch, winner="", winner_at=0.0)
    return Submit(memory, "no job carries the key")


def _vanished(pending: PendingCommand, known: Memory, view: View, timing: Timing) -> Step:
    """The step if the scheduler no longer shows the released job, which is never submitted again."""
    if view.winner is not None and view.winner.kind == "unknown":
        return Wait(timing.again, "the scheduler does not know the state of the new job")
    if (view.winner is not None and view.winner.over) or view.at - known.released_at > timing.remembered:
        lost = (
            f"{pending.old.partition(':')[0]}:{known.winner}:{known.tried_epoch}" if known.tried_epoch else ""
        )
        return Finish("done", f"the new job {known.winner} has run and left the queue", lost)
    step = _absence(known, view, timing)
    return step or Finish("failed", f"the scheduler has forgotten {known.winner} after its release")


def _end_old(  # noqa: PLR0911 - one a rule
    pending: PendingCommand, known: Memory, view: View, timing: Timing
) -> Step | None:
    """The next step to end the old start; None once it is proven gone."""
    state = view.old
    if state.over:
        return None
    if state.kind == "unknown":
        return Wait(timing.again, f"the scheduler does not know the state of {pending.old}")
    if state.kind == "absent":
        return _absence(known, view, timing)
    if state.kind == "ending":
        if not known.first_cancelled_at or view.at - known.first_cancelled_at < timing.force:
            return Wait(0.5, f"{pending.old} is ending")
    elif view.at > pending.expires and not known.first_cancelled_at and not known.tried_at:
        return Finish("expired", "it could not begin in time", untouched=True)
    if known.refusals >= REFUSALS and not known.winner:
        return Finish("failed", known.refusal)
    if known.cancelled_at and view.at - known.cancelled_at < timing.again:
        return Wait(0.5, f"{pending.old} has been cancelled and is {_word(state)}")
    first = known.first_cancelled_at or view.at
    memory = replace(known, cancelled_at=view.at, first_cancelled_at=first)
    return Cancel(memory, pending.old, "", view.at - first > timing.force, f"{pending.old} is {_word(state)}")


def _absence(known: Memory, view: View, timing: Timing) -> Step | None:
    """The step while a missing start may still come back; None once it has been missing for long enough."""
    if not known.missing_at or known.missing_epoch != view.epoch.name:
        return Remember(replace(known, missing_at=view.at, missing_epoch=view.epoch.name))
    if view.at - known.missing_at < timing.absent:
        return Wait(timing.absent - (view.at - known.missing_at), "missing, which is not yet an end")
    return None


def _release(  # noqa: PLR0911 - one a rule
    pending: PendingCommand, known: Memory, view: View, timing: Timing, winner: SchedulerJob
) -> Step:
    """Releases the chosen job after the old start is gone, then checks that the release lasts."""
    if winner.state.kind == "held":
        if known.refusals >= REFUSALS:
            return Cancel(known, winner.incarnation, pending.start_key, False, known.refusal)
        young = max(
            timing.durable - (view.at - known.winner_at),
            timing.boot_settle - view.epoch.age_s,
            timing.again - (view.at - known.released_at) if known.released_at else 0.0,
        )
        if young > 0:
            return Wait(young, "held until the scheduler cannot lose it")
        memory = replace(known, released_at=view.at, quiet_at=0.0)
        return Release(memory, winner.incarnation, f"{pending.old} is gone")
    if winner.state.over:
        never_ran = winner.state.word == "CANCELLED" and not known.released_at
        result: Literal["done", "failed"] = "failed" if never_ran else "done"
        return Finish(result, f"{winner.native_id} is {_word(winner.state)}", winner.incarnation)
    if not known.released_at:  # a person released it, or the cluster holds no jobs
        return Remember(replace(known, released_at=view.at))
    if not known.quiet_at or known.quiet_epoch != view.epoch.name:
        return Remember(replace(known, quiet_at=view.at, quiet_epoch=view.epoch.name))
    rest = max(timing.confirm - (view.at - known.quiet_at), timing.boot_settle - view.epoch.age_s)
    if rest > 0:
        return Wait(rest, "the scheduler can still lose the release")
    return Finish("done", f"{winner.native_id} is {_word(winner.state)}", winner.incarnation)


def _give_way(pending: PendingCommand, known: Memory, view: View) -> Step:
    """Cancels our held and queued jobs, because somebody else has started the job again."""
    for job in view.ours:
        if job.state.kind in ("held", "queued"):
            return Cancel(known, job.incarnation, pending.start_key, False, f"{view.successor} runs already")
    return Finish("superseded", f"somebody else has started {view.successor}")


def _number(job: SchedulerJob) -> tuple[int, ...]:
    """Sort key: the scheduler's ids grow in the sequence in which it took the jobs."""
    return tuple(int(part) for part in job.native_id.split("_") if part.isdigit())


def _word(state: StartState) -> str:
    return state.word.lower() or state.kind
