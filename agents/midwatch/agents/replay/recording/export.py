"""Shell: reads one job's partitions of `events` and `incidents` into a recording."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from midwatch.agents.query.topic_reader import PATIENCE, messages_of
from midwatch.agents.replay.recording.recording_file import (
    VERSION,
    WITHOUT_RULES,
    Head,
    Recording,
    RecordingSource,
)
from midwatch.agents.replay.recording.thinning import activation_in, thinned
from midwatch.agents.rulesets.bundles import limits_of
from midwatch.agents.rulesets.reload.topic import RulesTopic
from midwatch.streams.errors import UsageError
from midwatch.streams.records import codec
from midwatch.streams.settings.schema import Settings
from midwatch.streams.worker.fold import Message


def export(settings: Settings, job: str, patience: float = PATIENCE) -> Recording:
    """All that the two topics hold of the job now.

    `incidents` is read first: what stands there follows from events that are then there too.

    Raises:
        UsageError: neither topic holds a record of the job.
        ServiceUnreachable: Kafka or a topic is not there, or the end was not reached within `patience`.
    """
    names, key = settings.topic_names, job.encode()
    incidents = _ReadPartition(settings, names.incidents, key, patience)
    kept_incidents = tuple(thinned(incidents, key))
    events = _ReadPartition(settings, names.events, key, patience)
    kept_events = tuple(thinned(events, key))
    if not any(message.key == key for message in (*kept_events, *kept_incidents)):
        raise UsageError(
            "no record of this job stands in the topics",
            where=job,
            remedy="`midwatch jobs` lists those that are known",
        )
    bundles = _bundles(settings, (*kept_events, *kept_incidents))
    head = Head(
        job=job,
        events=events.source(),
        incidents=incidents.source(),
        limits=asdict(limits_of(settings)),
        policy=settings.policy,
        retries=settings.rules.retries,
        acting=settings.armed,
        recording=VERSION if bundles else WITHOUT_RULES,
    )
    return Recording(head, kept_events, kept_incidents, bundles)


def _bundles(settings: Settings, kept: tuple[Message, ...]) -> tuple[Message, ...]:
    """The bundles that the activations among the records name."""
    hashes = dict.fromkeys(said.bundle for message in kept if (said := activation_in(message)))
    if not hashes:
        return ()
    topic = RulesTopic(settings)
    try:
        topic.read_to_end()
        records = {hash_: topic.record(hash_) for hash_ in hashes}
        name = settings.topic_names.rules
        return tuple(
            Message(name, 0, topic.known[hash_], 0, 0, hash_.encode(), codec.encode(record))
            for hash_, record in records.items()
        )
    finally:
        topic.close()


class _ReadPartition:
    """The partition of one topic that holds the key, read once; it notes where the log begins."""

    def __init__(self, settings: Settings, topic: str, key: bytes, patience: float) -> None:
        self._topic = topic
        self._messages = messages_of(settings, topic, key, patience)
        self._first: Message | None = None

    def __iter__(self) -> Iterator[Message]:
        for found in self._messages:
            message = _message(found)
            self._first = self._first or message
            yield message

    def source(self) -> RecordingSource:
        if self._first is None:
            return RecordingSource(self._topic, 0)
        first = self._first
        cut_ms = first.timestamp_ms if first.offset > 0 else None
        return RecordingSource(self._topic, first.partition, first.offset, cut_ms)


def _message(found: Any) -> Message:
    return Message(
        topic=found.topic,
        partition=found.partition,
        offset=found.offset,
        timestamp_ms=found.timestamp,
        now_ms=found.timestamp,
        key=found.key,
        value=found.value,
        headers=tuple(found.headers or ()),
    )
