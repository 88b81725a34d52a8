"""From what a scheduler shows to facts. Pure: looks go in, changes come out.

A look is one successful sweep of a scheduler, with what it answered when asked about single starts. A failed
sweep is no look, so it never makes a job absent. A start that the scheduler does not know in two looks
`ABSENT_S` apart, under one boot of it, with accounting silent and without a beat of a live process in
between, has ended; how is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from midwatch.agents.schedulers.base import SchedulerJob, StartState
from midwatch.agents.watcher.census import JobStart
from midwatch.streams.records import SchedulerFact
from midwatch.streams.records.identity import native_id

ABSENT_S = 10.0
ABSENT = "ABSENT"
CANCELLED = "CANCELLED"
_CUT_SHORT = (CANCELLED, ABSENT, "LOST")  # any other word says that it ended by itself before it was ended


@dataclass(frozen=True, slots=True)
class SchedulerSweep:
    """One successful look. `at`: monotonic seconds. `boot`: which run of the scheduler answered."""

    cluster: str
    at: float
    boot: str
    jobs: Mapping[str, SchedulerJob]  # by incarnation
    answers: Mapping[str, StartState] = field(default_factory=dict)  # to `questions`, by incarnation


@dataclass(frozen=True, slots=True)
class Missing:
    """Since when, and under which boot, a start has not been seen."""

    since: float
    boot: str


@dataclass(frozen=True, slots=True)
class WatcherMemory:
    """What the watcher remembers between two looks: only what it may forget, all else is in `events`."""

    told: Mapping[str, str] = field(default_factory=dict)  # incarnation -> the last state sent
    missing: Mapping[str, Missing] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CancellationNote:
    """Who ended a start on purpose, as the executor's host knows it; `person` "" is a command of ours."""

    person: str


@dataclass(frozen=True, slots=True)
class SweepResult:
    """The facts of one look, and what to remember for the next."""

    watched: WatcherMemory
    facts: tuple[SchedulerFact, ...]


def questions(
    watched: WatcherMemory, jobs: Mapping[str, SchedulerJob], starts: Iterable[JobStart]
) -> tuple[str, ...]:
    """The starts to ask the scheduler about one by one: who cancelled them, or where they are."""
    known = {start.incarnation: start for start in starts}
    cancelled = [
        seen.incarnation
        for seen in jobs.values()
        if seen.state.over
        and seen.state.word == CANCELLED
        and _last(watched, seen.incarnation, known) != CANCELLED
    ]
    lost = [name for name, start in known.items() if not start.ended and name not in jobs]
    return (*cancelled, *lost)


def facts(
    watched: WatcherMemory,
    look: SchedulerSweep,
    starts: Iterable[JobStart],
    *,
    jobs_by_key: Mapping[str, str],
    cancellations: Mapping[str, CancellationNote],
) -> SweepResult:
    """What changed since the last look.

    `starts` are those known from `events`; a sighted one that is not among them belongs to the job of an
    earlier start of the same id, or to that whose effect key it carries. A fact sent twice is harmless.
    """
    known = {start.incarnation: start for start in starts}
    by_native = {native_id(start.incarnation): start.job for start in known.values()}
    told, missing, out = dict(watched.told), dict[str, Missing](), list[SchedulerFact]()

    def tell(job: str, incarnation: str, state: StartState, key: str = "") -> None:
        old, start = _last(watched, incarnation, known), known.get(incarnation)
        if old != state.word and not (start and start.ended and not state.over):
            cancellation = cancellations.get(incarnation)
            out.append(
                _fact(job, look.cluster, incarnation, old=old, state=_by(state, cancellation), key=key)
            )
            told[incarnation] = state.word

    for seen in look.jobs.values():
        start = known.get(seen.incarnation)
        earlier = start.job if start else by_native.get(seen.native_id, "")
        job = earlier or jobs_by_key.get(seen.effect_key, "")
        answer = look.answers.get(seen.incarnation)
        if job and not (start is None and _never_ran(seen.state)):
            state = answer if answer is not None and answer.over else seen.state
            tell(job, seen.incarnation, state, seen.effect_key)
    for name, start in known.items():
        answer = look.answers.get(name)
        if start.ended or name in look.jobs or answer is None or answer.kind == "unknown":
            if name in watched.missing and answer is not None and answer.kind == "unknown":
                missing[name] = watched.missing[name]
            continue
        if answer.kind != "absent":
            tell(start.job, name, answer)
            continue
        gone = _absent(start, watched.missing.get(name), look)
        if isinstance(gone, Missing):
            missing[name] = gone
        else:
            tell(start.job, name, gone)
    # Ends first: what SLURM requeued has ended before it starts again, and is not alive beside itself.
    return SweepResult(WatcherMemory(told, missing), tuple(sorted(out, key=lambda fact: not fact.ended)))


def _never_ran(state: StartState) -> bool:
    """A job of ours that is still held, or a twin that was taken away before it ran: no start of the job."""
    return state.kind == "held" or (state.over and state.word == CANCELLED)


def _last(watched: WatcherMemory, incarnation: str, known: Mapping[str, JobStart]) -> str:
    start = known.get(incarnation)
    return watched.told.get(incarnation, start.state if start else "")


def _absent(start: JobStart, before: Missing | None, look: SchedulerSweep) -> Missing | StartState:
    if before is None or before.boot != look.boot:
        return Missing(look.at, look.boot)
    if start.alive_at is not None and start.alive_at > before.since:
        return Missing(look.at, look.boot)
    if look.at - before.since < ABSENT_S:
        return before
    reason = f"absent from the queue for {look.at - before.since:.0f} s; how it ended is not known"
    return StartState("ended", ABSENT, "ended", reason=reason)


def _by(state: StartState, cancellation: CancellationNote | None) -> StartState:
    """A cancel that a command of ours brought about is no person's act."""
    if cancellation is None or state.word not in _CUT_SHORT:
        return state
    if cancellation.person:
        return StartState(
            "ended",
            state.word,
            "ended",
            "cancelled",
            state.exit_code,
            state.signal,
            by_person=cancellation.person,
        )
    return StartState(
        "ended", state.word, "ended", "", state.exit_code, state.signal, "ended by a command of midwatch"
    )


def _fact(
    job: str, cluster: str, incarnation: str, *, old: str, state: StartState, key: str
) -> SchedulerFact:
    return SchedulerFact(
        job=job,
        incarnation=incarnation,
        native_id=native_id(incarnation),
        old=old,
        new=state.word,
        ended=state.over,
        mode=state.mode,
        error_type=state.error_type,
        exit_code=state.exit_code,
        signal=state.signal,
        reason=state.reason,
        by_person=state.by_person,
        effect_key=key,
        cluster=cluster,
    )
