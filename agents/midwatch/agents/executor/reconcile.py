"""What to do next for one claimed order, so that its effects come about exactly once. Pure.

Level-triggered: every pass looks at what the scheduler shows, does the one next missing thing, and looks
again. It may be killed between any two steps, run twice at once, and outlive a crash of the scheduler. Five
rules carry it: what is kept in `Memory` is kept before the act; the answer to an act is never believed; a
new job is held until its record can no longer be lost, so that twins never run; the old start is gone
before the new one runs; and once a job was let go, no other one is ever made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Literal

from midwatch.agents.schedulers.base import Hint, SchedulerEpoch, SchedulerJob, StartState

REFUSALS = 3  # the same complaint so often is believed


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds to wait before a look is trusted."""

    settle: float  # an act under way must have landed or died: more than twice the scheduler's own timeout
    durable: float  # until a new job's record is on the scheduler's disk: a crash before forgets job and id
    boot_settle: float  # a scheduler just started kills orphans of its last run first
    confirm: float  # a release can be forgotten by a crash for as long
    absent: float  # two looks so far apart, under one run of the scheduler, prove absence
    again: float  # before a cancel or a release is repeated
    force: float  # what the polite way of cancelling gets
    remembered: float  # for how long the scheduler shows ended jobs, at most


SLURM = Timing(settle=25, durable=6, boot_settle=8, confirm=7, absent=10, again=5, force=120, remembered=300)
LOCAL = Timing(settle=15, durable=0, boot_settle=0, confirm=0, absent=0, again=2, force=20, remembered=0)


@dataclass(frozen=True, slots=True)
class PendingCommand:
    """What one accepted command wants of the scheduler. Times: seconds since 1970, the executor's clock."""

    old: str  # the incarnation to be ended; it must be gone before another one runs
    start_key: str  # "" to start nothing
    not_before: float = 0.0
    expires: float = float("inf")  # nothing is begun after this; what was begun is brought to its end


@dataclass(frozen=True, slots=True)
class Memory:
    """How far it got. Times as in `PendingCommand`; 0 means never."""

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

    def words(self) -> dict[str, str]:
        """As text, for keeping."""
        return {name: str(value) for name, value in asdict(self).items() if value}


def memory(words: Mapping[str, str]) -> Memory:
    """From what `Memory.words` gave; unknown words of a newer version are ignored."""
    texts = ("winner", "missing_epoch", "quiet_epoch", "refusal")
    known = [field.name for field in fields(Memory) if field.name in words]
    return Memory(**{name: words[name] if name in texts else float(words[name]) for name in known})  # type: ignore[arg-type] # each field is a text or a number, as `texts` says


@dataclass(frozen=True, slots=True)
class View:
    """One successful look. A failed one is no view: wait and look again."""

    at: float
    epoch: SchedulerEpoch
    holds: bool  # whether the cluster can submit without running
    old: StartState
    ours: Sequence[SchedulerJob] = ()  # all that carry the start key
    winner: StartState | None = None  # of `Memory.winner`, asked one by one, when it is not among `ours`
    successor: str = ""  # an incarnation of the job that came after the old one by somebody else's hand


@dataclass(frozen=True, slots=True)
class Remember:
    """Keep this and look again."""

    memory: Memory


@dataclass(frozen=True, slots=True)
class Submit:
    """Keep `memory`, then submit a held job after the old one."""

    memory: Memory
    reason: str


@dataclass(frozen=True, slots=True)
class Release:
    memory: Memory
    incarnation: str
    reason: str


@dataclass(frozen=True, slots=True)
class Cancel:
    """`key`: the start key if it is a job of ours, "" for the old one."""

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
    """The order needs nothing more.

    `untouched`: it is proven that no job was made and nothing was ended, so the effects may be claimed again.
    """

    result: Literal["done", "failed", "superseded", "expired"]
    reason: str
    incarnation: str = ""  # of the new job, if there is one
    untouched: bool = False


Step = Remember | Submit | Release | Cancel | Wait | Finish

_LIVE = ("held", "queued", "running", "ending")
_LET_GO = ("running", "ending")


def next_step(pending: PendingCommand, known: Memory, view: View, timing: Timing) -> Step:  # noqa: PLR0911 - one a rule
    """The one next thing to do."""
    if view.at < pending.not_before:
        return Wait(pending.not_before - view.at, "its time has not come")
    if not pending.start_key:
        return _end_old(pending, known, view, timing) or Finish("done", f"the old one is {_word(view.old)}")
    foreign = view.successor not in {"", *(job.incarnation for job in view.ours)}
    if foreign and not known.released_at:
        return _give_way(pending, known, view)
    winner = next((job for job in view.ours if job.native_id == known.winner), None)
    rival = next((j for j in view.ours if j is not winner and j.state.kind in _LET_GO), None)
    if rival and not known.released_at and (winner is None or winner.state.kind in ("held", "queued")):
        return Remember(replace(known, winner=rival.native_id, winner_at=view.at, released_at=view.at))
    if winner is None:
        return _make_one(pending, known, view, timing)
    for duplicate in view.ours:
        if duplicate is not winner and duplicate.state.kind in ("held", "queued"):
            return Cancel(
                known, duplicate.incarnation, pending.start_key, False, f"twin of {winner.native_id}"
            )
    step = _end_old(pending, known, view, timing)
    return step or _let_go(pending, known, view, timing, winner)


def answered(known: Memory, hint: Hint) -> Memory:
    """Keeps a refusal; every other answer to an act tells nothing that the next look does not tell better."""
    if hint.result != "refused":
        return known
    return replace(known, refusals=known.refusals + 1, refusal=hint.text)


def late_duplicates(start_key: str, winner: str, jobs: Sequence[SchedulerJob]) -> tuple[str, ...]:
    """Incarnations to cancel after an order was finished: an act that was slow may land minutes later."""
    return tuple(
        job.incarnation
        for job in jobs
        if job.effect_key == start_key and job.native_id != winner and job.state.kind in ("held", "queued")
    )


def _make_one(pending: PendingCommand, known: Memory, view: View, timing: Timing) -> Step:  # noqa: PLR0911 - one a rule
    """No job is chosen, or the chosen one is not to be seen."""
    if known.released_at:
        return _vanished(known, view, timing)
    live = [job for job in view.ours if job.state.kind in _LIVE]
    ran = [job for job in view.ours if job.state.over and job.state.word != "CANCELLED"]
    if candidates := live or ran:
        chosen = min(candidates, key=_number)
        return Remember(replace(known, winner=chosen.native_id, winner_at=view.at, refusals=0))
    if known.refusals >= REFUSALS:
        return Finish("failed", known.refusal, untouched=not known.first_cancelled_at)
    pause = timing.again * known.refusals if known.refusals else timing.settle
    if known.tried_at and view.at - known.tried_at < pause:
        return Wait(pause - (view.at - known.tried_at), "an earlier submission may still land")
    if view.at > pending.expires and not known.tried_at:
        return Finish("expired", "it could not be begun in time", untouched=not known.first_cancelled_at)
    if not view.holds and (step := _end_old(pending, known, view, timing)):
        return step
    return Submit(replace(known, tried_at=view.at, winner="", winner_at=0.0), "no job carries the key")


def _vanished(known: Memory, view: View, timing: Timing) -> Step:
    """The job was let go and is not shown any more: it is never made again, whatever became of it."""
    if view.winner is not None and view.winner.kind == "unknown":
        return Wait(timing.again, "the scheduler does not say what became of the new job")
    if (view.winner is not None and view.winner.over) or view.at - known.released_at > timing.remembered:
        return Finish("done", f"the new job {known.winner} has run and left the queue")
    step = _absence(known, view, timing)
    return step or Finish("failed", f"the scheduler has forgotten {known.winner} after its release")


def _end_old(  # noqa: PLR0911 - one a rule
    pending: PendingCommand, known: Memory, view: View, timing: Timing
) -> Step | None:
    """None once the old start is gone for sure."""
    state = view.old
    if state.over:
        return None
    if state.kind == "unknown":
        return Wait(timing.again, f"the scheduler does not say what {pending.old} does")
    if state.kind == "absent":
        return _absence(known, view, timing)
    if state.kind == "ending":
        if not known.first_cancelled_at or view.at - known.first_cancelled_at < timing.force:
            return Wait(0.5, f"{pending.old} is ending")
    elif view.at > pending.expires and not known.first_cancelled_at and not known.tried_at:
        return Finish("expired", "it could not be begun in time", untouched=True)
    if known.refusals >= REFUSALS and not known.winner:
        return Finish("failed", known.refusal)
    if known.cancelled_at and view.at - known.cancelled_at < timing.again:
        return Wait(0.5, f"{pending.old} was told to end and is {_word(state)}")
    first = known.first_cancelled_at or view.at
    kept = replace(known, cancelled_at=view.at, first_cancelled_at=first)
    return Cancel(kept, pending.old, "", view.at - first > timing.force, f"{pending.old} is {_word(state)}")


def _absence(known: Memory, view: View, timing: Timing) -> Step | None:
    """None once a start that the scheduler does not show has been missing for long enough."""
    if not known.missing_at or known.missing_epoch != view.epoch.name:
        return Remember(replace(known, missing_at=view.at, missing_epoch=view.epoch.name))
    if view.at - known.missing_at < timing.absent:
        return Wait(timing.absent - (view.at - known.missing_at), "missing, which is not yet an end")
    return None


def _let_go(  # noqa: PLR0911 - one a rule
    pending: PendingCommand, known: Memory, view: View, timing: Timing, winner: SchedulerJob
) -> Step:
    """The old start is gone: let the chosen job run, and see that it stays let go."""
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
        kept = replace(known, released_at=view.at, quiet_at=0.0)
        return Release(kept, winner.incarnation, f"{pending.old} is gone")
    if winner.state.over:
        stillborn = winner.state.word == "CANCELLED" and not known.released_at
        result: Literal["done", "failed"] = "failed" if stillborn else "done"
        return Finish(result, f"{winner.native_id} is {_word(winner.state)}", winner.incarnation)
    if not known.released_at:  # a person let it go, or the cluster does not hold
        return Remember(replace(known, released_at=view.at))
    if not known.quiet_at or known.quiet_epoch != view.epoch.name:
        return Remember(replace(known, quiet_at=view.at, quiet_epoch=view.epoch.name))
    rest = max(timing.confirm - (view.at - known.quiet_at), timing.boot_settle - view.epoch.age_s)
    if rest > 0:
        return Wait(rest, "a release can still be forgotten")
    return Finish("done", f"{winner.native_id} is {_word(winner.state)}", winner.incarnation)


def _give_way(pending: PendingCommand, known: Memory, view: View) -> Step:
    """Somebody else has started the job again: what we hold must never run."""
    for job in view.ours:
        if job.state.kind in ("held", "queued"):
            return Cancel(known, job.incarnation, pending.start_key, False, f"{view.successor} runs already")
    return Finish("superseded", f"somebody else has started {view.successor}")


def _number(job: SchedulerJob) -> tuple[int, ...]:
    """Lowest first: ids grow with the order in which the scheduler took the jobs."""
    return tuple(int(part) for part in job.native_id.split("_") if part.isdigit())


def _word(state: StartState) -> str:
    return state.word.lower() or state.kind
