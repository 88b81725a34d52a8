"""The same again: a job's topics, exported and folded once more, say in every field what the stream said."""

from __future__ import annotations

from dataclasses import dataclass

from midwatch.agents.decide.decision import Rulebook
from midwatch.agents.query.topic_reader import messages_of, read_topics
from midwatch.agents.replay.recording.export import export
from midwatch.agents.replay.recording.recording_file import lines_of, read
from midwatch.agents.replay.recording.refold import Refolded, bundles_in, refold
from midwatch.agents.rulesets.bundles import policies_of
from midwatch.agents.rulesets.extensions import extensions_of
from midwatch.rules.detectors.limits import WatchLimits
from midwatch.streams.records import Decision, Hits, Incident, SpecEvent, codec
from midwatch.streams.settings.schema import Settings
from processes import wait_for

SETTLED_S = 60.0


@dataclass(frozen=True, slots=True)
class Again:
    """A recording's file and what is derived from it; `said` and `decided` is what the topics hold."""

    file: bytes
    derived: Refolded
    said: tuple[object, ...]
    decided: tuple[Decision, ...]

    @property
    def incidents(self) -> list[Incident]:
        return [r for r in self.derived.records if isinstance(r, Incident)]

    @property
    def complete(self) -> bool:
        """Whether detect and decide have come as far as the events that were recorded."""
        reached = len(self.said) >= len(self.derived.records)
        return reached and len(self.decided) >= len(self.derived.decisions) and not self.derived.differences


def same_again(settings: Settings, job: str) -> Again:
    """Export and fold again, until the live workers have come as far; then compare field by field."""
    again = _again(settings, job)

    def complete() -> bool:
        nonlocal again
        again = again if again.complete else _again(settings, job)
        return again.complete

    try:
        wait_for(complete, "the workers have come as far as the recording", SETTLED_S)
    except AssertionError as late:
        raise AssertionError(f"{late}: {job}\n{_apart(again)}") from None
    derived = again.derived
    assert list(derived.records) == list(again.said[: len(derived.records)]), job
    assert list(derived.decisions) == list(again.decided[: len(derived.decisions)]), job
    return again


def jobs_of(settings: Settings) -> list[str]:
    """Every job that something was said of in `events`."""
    read_ = read_topics(settings, [settings.topic_names.events])
    named = (seen for seen in read_.seen if isinstance(seen.record, SpecEvent | Hits) and seen.key)
    return sorted({seen.key.decode() for seen in named if seen.key})


def records_of(settings: Settings, topic: str, job: str) -> tuple[object, ...]:
    """What a topic holds of the job, each record once."""
    found: dict[bytes, object] = {}
    for message in messages_of(settings, topic, job.encode()):
        if message.key == job.encode():
            name = dict(message.headers or ()).get("id", b"%d" % message.offset)
            found.setdefault(name, codec.decode(message.value))
    return tuple(found.values())


def _again(settings: Settings, job: str) -> Again:
    file = b"\n".join(lines_of(export(settings, job)))
    recording = read(file.splitlines(), job)
    head = recording.head
    book = Rulebook(policies_of(settings), lambda c: c, head.policy, acting=head.acting)
    contents = bundles_in(recording, extensions_of(settings.extensions))
    derived = refold(recording, WatchLimits(**head.limits), book, contents)
    names = settings.topic_names
    decided = records_of(settings, names.decisions, job)
    return Again(
        file,
        derived,
        records_of(settings, names.incidents, job),
        tuple(d for d in decided if isinstance(d, Decision)),
    )


def _apart(again: Again) -> str:
    counts = (
        f"{len(again.derived.records)} records derived, {len(again.said)} said; "
        f"{len(again.derived.decisions)} decisions derived, {len(again.decided)} made"
    )
    return "\n".join([counts, *again.derived.differences])
