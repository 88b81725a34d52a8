"""Turns what a scheduler shows into facts. Pure: looks go in, changes come out.

A look is one successful sweep of a scheduler, with its answers about single starts. A failed sweep is no
look, so it never makes a job absent. A start has ended in an unknown way if all of these hold:

- The scheduler does not know it in two looks at least `ABSENT_S` apart, under one boot of the scheduler.
- Accounting does not know it either.
- No heartbeat of a live process came in between.
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
_CUT_SHORT = (
    CANCELLED,
    "STOPPED",
    ABSENT,
    "LOST",
)  # with any other state it ended by itself before the cancel


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
    """Since when, in monotonic seconds, and under which boot the scheduler has not shown a start."""

    since: float
    boot: str


@dataclass(frozen=True, slots=True)
class WatcherMemory:
    """What the watcher remembers between two looks. It may lose all of it: `events` holds the rest."""

    sent: Mapping[str, str] = field(default_factory=dict)  # incarnation -> the last state sent
    missing: Mapping[str, Missing] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CancellationNote:
    """Who cancelled a start, as this host knows it. `person`: "" if a command of midwatch did."""

    person: str


@dataclass(frozen=True, slots=True)
class SweepResult:
    """The facts of one look, and what to remember for the next."""

    watched: WatcherMemory
    facts: tuple[SchedulerFact, ...]


def questions(
    watched: WatcherMemory, jobs: Mapping[str, SchedulerJob], starts: Iterable[JobStart]
) -> tuple[str, ...]:
    """The incarnations to ask the scheduler about one by one: who cancelled them, or where they are.

    Only starts that `events` know: a cluster may show thousands of cancelled jobs of others at each look.
    """
    known = {start.incarnation: start for start in starts}
    cancelled = [
        name
        for name in known
        if (seen := jobs.get(name)) is not None
        and seen.state.over
        and seen.state.word == CANCELLED
        and _last(watched, name, known) != CANCELLED
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

    `starts` are those known from `events`. Another start belongs to the job of an earlier start of the same
    native id, or else to the job whose effect key it carries. A fact sent twice is harmless.
    """
    known = {start.incarnation: start for start in starts}
    by_native = {native_id(start.incarnation): start.job for start in known.values()}
    sent, missing, changes = dict(watched.sent), dict[str, Missing](), list[SchedulerFact]()

    def send(job: str, incarnation: str, state: StartState, key: str = "") -> None:
        old, start = _last(watched, incarnation, known), known.get(incarnation)
        if old != state.word and not (start and start.ended and not state.over):
            cancellation = cancellations.get(incarnation)
            by = _cancelled_by(state, cancellation)
            native = native_id(incarnation)
            changes.append(by.fact(job, incarnation, native, look.cluster, before=old, effect_key=key))
            sent[incarnation] = state.word

    for seen in look.jobs.values():
        start = known.get(seen.incarnation)
        earlier = start.job if start else by_native.get(seen.native_id, "")
        job = earlier or jobs_by_key.get(seen.effect_key, "")
        answer = look.answers.get(seen.incarnation)
        if job and not (start is None and _never_ran(seen.state)):
            state = answer if answer is not None and answer.over else seen.state
            send(job, seen.incarnation, state, seen.effect_key)
    for name, start in known.items():
        answer = look.answers.get(name)
        if start.ended or name in look.jobs or answer is None or answer.kind == "unknown":
            if name in watched.missing and answer is not None and answer.kind == "unknown":
                missing[name] = watched.missing[name]
            continue
        if answer.kind != "absent":
            send(start.job, name, answer)
            continue
        gone = _absent(start, watched.missing.get(name), look)
        if isinstance(gone, Missing):
            missing[name] = gone
        else:
            send(start.job, name, gone)
    # Ends come first: a job that SLURM requeued must not look as if two of its starts were alive at once.
    return SweepResult(WatcherMemory(sent, missing), tuple(sorted(changes, key=lambda fact: not fact.ended)))


def _never_ran(state: StartState) -> bool:
    """Whether it is a held job of ours, or a duplicate cancelled before it ran: no start of the job."""
    return state.kind == "held" or (state.over and state.word == CANCELLED)


def _last(watched: WatcherMemory, incarnation: str, known: Mapping[str, JobStart]) -> str:
    start = known.get(incarnation)
    return watched.sent.get(incarnation, start.state if start else "")


def _absent(start: JobStart, before: Missing | None, look: SchedulerSweep) -> Missing | StartState:
    if before is None or before.boot != look.boot:
        return Missing(look.at, look.boot)
    if start.alive_at is not None and start.alive_at > before.since:
        return Missing(look.at, look.boot)
    if look.at - before.since < ABSENT_S:
        return before
    reason = f"absent from the queue for {look.at - before.since:.0f} s; how it ended is not known"
    return StartState("ended", ABSENT, "ended", reason=reason)


def _cancelled_by(state: StartState, cancellation: CancellationNote | None) -> StartState:
    """The state with who cancelled the start: a person, or a command of midwatch."""
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
