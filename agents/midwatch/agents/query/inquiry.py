"""Reads from the topics what they hold on one job or on all: which topics, from when, whose records."""

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
from midwatch.streams.records import Command, Decision, Spec
from midwatch.streams.settings.schema import Settings

LIVE_MS = 15 * 60_000
"""A job without a record in `events` for so long is not alive. Three times the longest heartbeat interval."""

_EVENTS_AT_MOST_MS = 24 * 3_600_000
_BEFORE_INCIDENT_MS = 60_000


@dataclass(frozen=True, slots=True)
class JobTimelines:
    """The timelines by job. `unreadable` records are broken, unsigned, or written by a newer midwatch."""

    timelines: dict[str, Timeline]
    unreadable: int = 0


def ask_job(settings: Settings, name: str, now_ms: int, patience: float = PATIENCE) -> tuple[Timeline, int]:
    """The timeline of the job that `name` means, and how many records could not be read.

    Leaves out old records of `events`, such as heartbeats and hits. It reads `events` from shortly before
    the latest incident, at most a day back.

    Raises as `ask_name`.
    """
    names = settings.topic_names
    job, judged = _find_job(settings, name, now_ms, patience)
    known = timelines(_timed(judged)).get(job, Timeline(job))
    start = _events_since(known, now_ms)
    events = read_topics(
        settings, [names.events], since_ms={names.events: start}, only_key=job.encode(), patience=patience
    )
    seen = sorted((*_timed(judged), *_timed(events)), key=lambda timed: timed.at_ms)
    return timelines(seen)[job], judged.unreadable + events.unreadable


def ask_name(settings: Settings, name: str, now_ms: int, patience: float = PATIENCE) -> str:
    """The whole name of the job that a person means by its whole name, its run or a scheduler's id.

    Raises:
        UsageError: no job fits the name, or more than one.
        ServiceUnreachable: Kafka does not answer in time.
    """
    return _find_job(settings, name, now_ms, patience)[0]


def _find_job(settings: Settings, name: str, now_ms: int, patience: float) -> tuple[str, Reading]:
    """The job that `name` means, and the records of incidents, decisions, commands and specs on the way.

    A job that has only shipped lines counts too: only the person can tell apart two jobs of one run.
    """
    names = settings.topic_names
    about = (names.incidents, names.decisions, names.commands, names.specs)
    only = name.encode() if ":" in name else None
    read_about = read_topics(settings, about, only_key=only, patience=patience)
    judged = _without_forged(settings, _without_copies(settings, read_about))
    read = partial(read_topics, settings, [names.events], only_key=only, patience=patience)
    found = find_jobs(name, timelines(_timed(judged)))
    if only is None or not found:
        # Only records whose key has the name are decoded.
        live = read(since_ms={names.events: now_ms - LIVE_MS}, key_filter=partial(_is_named, name))
        found = find_jobs(name, timelines([*_timed(judged), *_timed(live)])) or found
    for back_ms in (LIVE_MS, _EVENTS_AT_MOST_MS):
        if not found and only is None:
            found = find_jobs(name, timelines(_timed(read(since_ms={names.events: now_ms - back_ms}))))
    if not found:
        raise UsageError(
            "no such job in the topics",
            where=name,
            remedy="`midwatch jobs` lists the known jobs; a shipper must have sent something first",
        )
    if len(found) > 1:
        raise UsageError(
            f"{len(found)} jobs could be meant: {', '.join(sorted(found))}",
            where=name,
            remedy="name one as cluster:user/run",
        )
    return found[0], judged


def _is_named(name: str, key: bytes | None) -> bool:
    job = (key or b"").decode("latin-1")
    return name in (job, run_of(job))


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Whole names of living jobs that have the run's name, or the checkpoint directory, of a new job."""

    of_its_name: tuple[str, ...] = ()
    of_its_checkpoints: tuple[str, ...] = ()


def ask_neighbours(
    settings: Settings, spec: Spec, incarnation: str, now_ms: int, patience: float = PATIENCE
) -> Neighbours:
    """The living jobs that could be confused with the start of this spec, or write to its checkpoints.

    Raises:
        ServiceUnreachable: Kafka does not answer in time.
    """
    names = settings.topic_names
    specs = read_topics(settings, [names.specs], patience=patience)
    known = {seen.record.job: seen.record for seen in specs.seen if isinstance(seen.record, Spec)}
    same_name = {job for job in (*known, spec.job) if run_of(job) == run_of(spec.job)}
    directory = spec.checkpoint_directory
    same_checkpoints = {
        job
        for job, other in known.items()
        if directory and _same_directory(directory, other.checkpoint_directory)
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

    living = {job for job in sorted(same_name | same_checkpoints) if lives(job)}
    return Neighbours(tuple(sorted(same_name & living)), tuple(sorted(same_checkpoints & living)))


def _same_directory(directory: str, other: str) -> bool:
    return bool(other) and realpath(directory) == realpath(other)


def ask_all(settings: Settings, since_ms: int, now_ms: int, patience: float = PATIENCE) -> JobTimelines:
    """The timelines of all jobs judged since `since_ms`, or with a record in `events` in the last `LIVE_MS`.

    Raises:
        ServiceUnreachable: Kafka does not answer in time.
    """
    names = settings.topic_names
    since = dict.fromkeys((names.incidents, names.decisions, names.commands), since_ms)
    since[names.events] = now_ms - LIVE_MS
    every = read_topics(settings, (*since, names.specs), since_ms=since, patience=patience)
    reading = _without_forged(settings, _without_copies(settings, every))
    # `specs` keeps a spec for ever, so a spec alone does not show that the job is alive.
    recent = {job_of(seen.record) for seen in reading.seen if seen.topic != names.specs}
    found = timelines(_timed(reading))
    return JobTimelines(
        {job: timeline for job, timeline in found.items() if timeline.real and job in recent},
        reading.unreadable,
    )


def who_armed(timeline: Timeline, state_directory: Path) -> Arming:
    """Whether the executor may act for a job, by the marks of this host, or else by the topics."""
    marked = marked_arming(state_directory, timeline.job)
    if marked is not None:
        return marked
    if timeline.act is not None:
        return arming_by_person(timeline.act.who, armed=timeline.armed)
    return arming(state_directory, timeline.job, armed_by_spec=timeline.armed_by_spec)


def _events_since(timeline: Timeline, now_ms: int) -> int:
    latest = next((a.incident for a in reversed(timeline.attempts) if a.incident), None)
    opened = latest.opened_ms if latest else 0
    return max(
        min(opened - _BEFORE_INCIDENT_MS if opened else now_ms, now_ms - LIVE_MS), now_ms - _EVENTS_AT_MOST_MS
    )


def _without_forged(settings: Settings, reading: Reading) -> Reading:
    """The reading without commands and specs that a stranger wrote. Needs this installation's public key.

    The executor dead-letters such commands and refuses to start such specs. Without the key on this host
    the reading stays as it is.
    """
    try:
        verifier = load_verifier(settings.state_directory)
    except ConfigurationError:
        return reading
    kept = [
        seen
        for seen in reading.seen
        if not isinstance(seen.record, Command | Spec) or _signed_by_us(seen, seen.record, verifier)
    ]
    return Reading(kept, reading.unreadable + len(reading.seen) - len(kept))


def _signed_by_us(seen: SeenRecord, record: Command | Spec, verifier: Verifier) -> bool:
    return seen.key == record.job.encode() and verifier.accepts(record)


def _without_copies(settings: Settings, reading: Reading) -> Reading:
    """The reading without what decide forwards to the messages, since the same stands in `incidents`."""
    decisions = settings.topic_names.decisions
    kept = [seen for seen in reading.seen if seen.topic != decisions or isinstance(seen.record, Decision)]
    return Reading(kept, reading.unreadable)


def _timed(reading: Reading) -> Iterable[Timed]:
    return [Timed(seen.at_ms, seen.record) for seen in reading.seen]
