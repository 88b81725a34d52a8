"""Asks the topics about one job or all of them: which to read, from when, and whose records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from midwatch.agents.reading import PATIENCE, Reading, Seen, read_topics
from midwatch.agents.signing import Verifier, load_verifier
from midwatch.agents.story import Story, Timed, find_jobs, stories
from midwatch.streams.errors import ConfigurationError, UsageError
from midwatch.streams.records import Command
from midwatch.streams.settings import Settings

LIVE_MS = 15 * 60_000
"""A job that gave no sign for this long is not counted among the living: three times the longest beat."""

_EVENTS_AT_MOST_MS = 24 * 3_600_000
_BEFORE_INCIDENT_MS = 60_000


@dataclass(frozen=True, slots=True)
class Told:
    """What was asked for. `unreadable` records were written by a newer midwatch, or are broken."""

    stories: dict[str, Story]
    unreadable: int = 0


def ask_job(settings: Settings, asked: str, now_ms: int, patience: float = PATIENCE) -> tuple[Story, int]:
    """The story of the job that `asked` means, and how many records could not be read.

    Everything of it is read but old beats and hits: `events` is read from shortly before the latest
    incident, at most a day back.

    Raises:
        UsageError: no job, or more than one, is meant.
        ServiceUnreachable: Kafka does not answer in time.
    """
    names = settings.topic_names
    told_about = (names.incidents, names.decisions, names.commands)
    only = asked.encode() if ":" in asked else None
    judged = _believed(settings, read_topics(settings, told_about, only_key=only, patience=patience))
    recent = {names.events: now_ms - LIVE_MS}
    known = stories(_timed(judged))
    meant = find_jobs(asked, known)
    if not meant:
        live = read_topics(settings, [names.events], since_ms=recent, only_key=only, patience=patience)
        known = stories(_timed(live))
        meant = find_jobs(asked, known)
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
    job = meant[0]
    start = _start(known[job], now_ms)
    events = read_topics(
        settings, [names.events], since_ms={names.events: start}, only_key=job.encode(), patience=patience
    )
    seen = sorted((*_timed(judged), *_timed(events)), key=lambda timed: timed.at_ms)
    return stories(seen)[job], judged.unreadable + events.unreadable


def ask_all(settings: Settings, since_ms: int, now_ms: int, patience: float = PATIENCE) -> Told:
    """The stories of all jobs that gave a sign since `since_ms`: judged then, or alive in the last minutes.

    Raises:
        ServiceUnreachable: Kafka does not answer in time.
    """
    names = settings.topic_names
    since = dict.fromkeys((names.incidents, names.decisions, names.commands), since_ms)
    since[names.events] = now_ms - LIVE_MS
    read = _believed(settings, read_topics(settings, since, since_ms=since, patience=patience))
    return Told(stories(_timed(read)), read.unreadable)


def _start(told: Story, now_ms: int) -> int:
    latest = told.latest
    opened = latest.incident.opened_ms if latest and latest.incident else 0
    return max(
        min(opened - _BEFORE_INCIDENT_MS if opened else now_ms, now_ms - LIVE_MS), now_ms - _EVENTS_AT_MOST_MS
    )


def _believed(settings: Settings, read: Reading) -> Reading:
    """Without orders that a stranger wrote, where this installation's key lies here to tell them by: the
    executor sets them aside, so they were never ordered."""
    try:
        verifier = load_verifier(settings.state_directory)
    except ConfigurationError:
        return read
    kept = [s for s in read.seen if not isinstance(s.record, Command) or _ordered(s, s.record, verifier)]
    return Reading(kept, read.unreadable + len(read.seen) - len(kept))


def _ordered(seen: Seen, command: Command, verifier: Verifier) -> bool:
    return seen.key == command.job.encode() and verifier.accepts(command)


def _timed(read: Reading) -> Iterable[Timed]:
    return [Timed(seen.at_ms, seen.record) for seen in read.seen]
