"""Asks the topics about one job or all of them: which to read, from when, and whose records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from os.path import realpath
from pathlib import Path

from midwatch.agents.executor.arming import Arming, arming, arming_by_person, marked_arming
from midwatch.agents.query.timeline import Timed, Timeline, find_jobs, job_of, run_of, timelines
from midwatch.agents.query.topic_reader import PATIENCE, Reading, SeenRecord, read_topics
from midwatch.agents.signing import Verifier, load_verifier
from midwatch.streams.errors import ConfigurationError, UsageError
from midwatch.streams.records import Command, Spec
from midwatch.streams.settings.schema import Settings

LIVE_MS = 15 * 60_000
"""A job that gave no sign for this long is not counted among the living: three times the longest beat."""

_EVENTS_AT_MOST_MS = 24 * 3_600_000
_BEFORE_INCIDENT_MS = 60_000


@dataclass(frozen=True, slots=True)
class JobTimelines:
    """What was asked for. `unreadable` records were written by a newer midwatch, or are broken."""

    timelines: dict[str, Timeline]
    unreadable: int = 0


def ask_job(settings: Settings, asked: str, now_ms: int, patience: float = PATIENCE) -> tuple[Timeline, int]:
    """The story of the job that `asked` means, and how many records could not be read.

    Everything of it is read but old beats and hits: `events` is read from shortly before the latest
    incident, at most a day back.

    Raises as `ask_name`.
    """
    names = settings.topic_names
    job, judged = _meant(settings, asked, now_ms, patience)
    known = timelines(_timed(judged)).get(job, Timeline(job))
    start = _start(known, now_ms)
    events = read_topics(
        settings, [names.events], since_ms={names.events: start}, only_key=job.encode(), patience=patience
    )
    seen = sorted((*_timed(judged), *_timed(events)), key=lambda timed: timed.at_ms)
    return timelines(seen)[job], judged.unreadable + events.unreadable


def ask_name(settings: Settings, asked: str, now_ms: int, patience: float = PATIENCE) -> str:
    """The whole name of the job that a person means by its name, its run or a scheduler's id.

    Raises:
        UsageError: no job, or more than one, is meant.
        ServiceUnreachable: Kafka does not answer in time.
    """
    return _meant(settings, asked, now_ms, patience)[0]


def _meant(settings: Settings, asked: str, now_ms: int, patience: float) -> tuple[str, Reading]:
    """The job that is meant, and what was read on the way: what was judged, and the specs.

    Two jobs of one run are told apart by nobody but the person: whoever has only shipped lines counts too.
    """
    names = settings.topic_names
    about = (names.incidents, names.decisions, names.commands, names.specs)
    only = asked.encode() if ":" in asked else None
    judged = _believed(settings, read_topics(settings, about, only_key=only, patience=patience))
    read = partial(read_topics, settings, [names.events], only_key=only, patience=patience)
    meant = find_jobs(asked, timelines(_timed(judged)))
    if only is None or not meant:
        # By the key alone: nothing is decoded but what bears the name.
        live = read(since_ms={names.events: now_ms - LIVE_MS}, wanted=partial(_is_named, asked))
        named = find_jobs(asked, timelines([*_timed(judged), *_timed(live)]))
        meant = named or meant
    for back_ms in (LIVE_MS, _EVENTS_AT_MOST_MS):
        if not meant and only is None:
            meant = find_jobs(asked, timelines(_timed(read(since_ms={names.events: now_ms - back_ms}))))
    if not meant:
        raise UsageError(
            "no such job in the topics",
            where=asked,
            remedy="`midwatch jobs` lists those that are known; a shipper must have sent something first",
        )
    if len(meant) > 1:
        raise UsageError(
            f"{len(meant)} jobs could be meant: {', '.join(sorted(meant))}",
            where=asked,
            remedy="name one as cluster:user/run",
        )
    return meant[0], judged


def _is_named(asked: str, key: bytes | None) -> bool:
    job = (key or b"").decode("latin-1")
    return asked in (job, run_of(job))


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Living jobs that a new one may be taken for, or may get in the way of: whole names."""

    of_its_name: tuple[str, ...] = ()
    of_its_checkpoints: tuple[str, ...] = ()


def ask_neighbours(
    settings: Settings, spec: Spec, incarnation: str, now_ms: int, patience: float = PATIENCE
) -> Neighbours:
    """Who lives beside the start of this spec. Raises ServiceUnreachable when Kafka does not tell in time."""
    names = settings.topic_names
    specs = read_topics(settings, [names.specs], patience=patience)
    known = {seen.record.job: seen.record for seen in specs.seen if isinstance(seen.record, Spec)}
    same_name = {job for job in (*known, spec.job) if run_of(job) == run_of(spec.job)}
    directory = spec.checkpoint_directory
    same_place = {
        job for job, other in known.items() if directory and _one_place(directory, other.checkpoint_directory)
    } - {spec.job}

    def lives(job: str) -> bool:
        events = read_topics(
            settings,
            [names.events],
            since_ms={names.events: now_ms - _EVENTS_AT_MOST_MS},
            only_key=job.encode(),
            patience=patience,
        )
        return timelines(_timed(events)).get(job, Timeline(job)).lives_at(now_ms, besides=incarnation)

    living = {job for job in sorted(same_name | same_place) if lives(job)}
    return Neighbours(tuple(sorted(same_name & living)), tuple(sorted(same_place & living)))


def _one_place(directory: str, other: str) -> bool:
    return bool(other) and realpath(directory) == realpath(other)


def ask_all(settings: Settings, since_ms: int, now_ms: int, patience: float = PATIENCE) -> JobTimelines:
    """The stories of all jobs that gave a sign since `since_ms`: judged then, or alive in the last minutes.

    Raises:
        ServiceUnreachable: Kafka does not answer in time.
    """
    names = settings.topic_names
    since = dict.fromkeys((names.incidents, names.decisions, names.commands), since_ms)
    since[names.events] = now_ms - LIVE_MS
    read = _believed(
        settings, read_topics(settings, (*since, names.specs), since_ms=since, patience=patience)
    )
    # A spec alone, kept for good, is no sign of life.
    lately = {job_of(seen.record) for seen in read.seen if seen.topic != names.specs}
    told = timelines(_timed(read))
    return JobTimelines(
        {job: one for job, one in told.items() if one.real and job in lately}, read.unreadable
    )


def who_armed(told: Timeline, state_directory: Path) -> Arming:
    """Whether the executor may act for a job: the marks of this host, else what the topics tell."""
    marked = marked_arming(state_directory, told.job)
    if marked is not None:
        return marked
    if told.act is not None:
        return arming_by_person(told.act.who, armed=told.armed)
    return arming(state_directory, told.job, armed_by_spec=told.armed_by_spec)


def _start(told: Timeline, now_ms: int) -> int:
    latest = told.latest
    opened = latest.incident.opened_ms if latest and latest.incident else 0
    return max(
        min(opened - _BEFORE_INCIDENT_MS if opened else now_ms, now_ms - LIVE_MS), now_ms - _EVENTS_AT_MOST_MS
    )


def _believed(settings: Settings, read: Reading) -> Reading:
    """Without commands and specs that a stranger wrote, if this installation's public key lies here.

    The executor dead-letters such commands and never reads such specs, so they count for nothing.
    """
    try:
        verifier = load_verifier(settings.state_directory)
    except ConfigurationError:
        return read
    kept = [s for s in read.seen if not isinstance(s.record, Command | Spec) or _ours(s, s.record, verifier)]
    return Reading(kept, read.unreadable + len(read.seen) - len(kept))


def _ours(seen: SeenRecord, record: Command | Spec, verifier: Verifier) -> bool:
    return seen.key == record.job.encode() and verifier.accepts(record)


def _timed(read: Reading) -> Iterable[Timed]:
    return [Timed(seen.at_ms, seen.record) for seen in read.seen]
