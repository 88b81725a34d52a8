"""Shell: makes a recording of one job's records of `events` and `incidents`."""

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
    """Record all that the two topics hold of the job now.

    It reads `incidents` first. Then `events` holds every event from which a recorded incident follows.

    Raises:
        UsageError: neither topic holds a record of the job.
        ServiceUnreachable: Kafka or a topic is not there, or the read lasted longer than `patience` seconds.
    """
    names, key = settings.topic_names, job.encode()
    incidents = _ReadPartition(settings, names.incidents, key, patience)
    kept_incidents = tuple(thinned(incidents, key))
    events = _ReadPartition(settings, names.events, key, patience)
    kept_events = tuple(thinned(events, key))
    if not any(message.key == key for message in (*kept_events, *kept_incidents)):
        raise UsageError(
            "the topics hold no record of this job",
            where=job,
            remedy="`midwatch jobs` lists the known jobs",
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
    activations = (activation_in(message) for message in kept)
    hashes = dict.fromkeys(activation.bundle for activation in activations if activation)
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
    """One read of the partition that holds the key in one topic. It notes where the log begins."""

    def __init__(self, settings: Settings, topic: str, key: bytes, patience: float) -> None:
        self._topic = topic
        self._messages = messages_of(settings, topic, key, patience)
        self._first: Message | None = None

    def __iter__(self) -> Iterator[Message]:
        for received in self._messages:
            message = _message(received)
            self._first = self._first or message
            yield message

    def source(self) -> RecordingSource:
        if self._first is None:
            return RecordingSource(self._topic, 0)
        first = self._first
        cut_ms = first.timestamp_ms if first.offset > 0 else None
        return RecordingSource(self._topic, first.partition, first.offset, cut_ms)


def _message(received: Any) -> Message:
    return Message(
        topic=received.topic,
        partition=received.partition,
        offset=received.offset,
        timestamp_ms=received.timestamp,
        now_ms=received.timestamp,
        key=received.key,
        value=received.value,
        headers=tuple(received.headers or ()),
    )
