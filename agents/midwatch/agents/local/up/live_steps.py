"""Prints every step of every job while `up` runs, as soon as the topics hold it."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

from midwatch.agents import activity
from midwatch.agents.local.up.processes import Say
from midwatch.agents.signing import ensure_keys
from midwatch.streams.errors import MalformedRecord, NewerRecord
from midwatch.streams.records import Command, Decision, Incident, SchedulerFact, codec
from midwatch.streams.services.kafka_client import plain_consumer
from midwatch.streams.services.reachable import kafka_log
from midwatch.streams.settings.schema import Settings

_POLL_MS = 500
_AGAIN_S = 2.0
_KEPT = 1000
"""How many it remembers: commands and last steps for their outcomes, and records to print none twice."""


_ONLY: dict[str, type] = {"events": SchedulerFact, "decisions": Decision}
"""What it prints of a topic. All else of it stands in `incidents` too, whose order counts."""


class Following(threading.Thread):
    """Follows the topics from their current ends until `stop`. After a Kafka error it pauses and retries."""

    def __init__(self, settings: Settings, say: Say) -> None:
        super().__init__(name="following", daemon=True)
        self._settings = settings
        self._say = say
        self._verifier = ensure_keys(settings.state_directory).verifier()
        self._over = threading.Event()
        self._commands: dict[str, Command] = {}
        self._last_steps: dict[str, int | None] = {}
        """By the incident: the last step before it."""
        self._printed: dict[bytes, None] = {}

    def stop(self) -> None:
        """Stops. After the return it prints no further line."""
        self._over.set()
        self.join(5)

    def run(self) -> None:
        from kafka.errors import KafkaError

        with kafka_log():
            while not self._over.is_set():
                with contextlib.suppress(KafkaError, OSError):
                    self._follow()
                self._over.wait(_AGAIN_S)

    def _follow(self) -> None:
        from kafka import TopicPartition

        names = self._settings.topic_names
        consumer = plain_consumer(self._settings.kafka, auto_offset_reset="latest")
        try:
            topics = (names.events, names.incidents, names.decisions, names.commands, names.rules)
            consumer.assign(
                [TopicPartition(t, n) for t in topics for n in consumer.partitions_for_topic(t) or ()]
            )
            consumer.seek_to_end()
            while not self._over.is_set():
                for partition, messages in consumer.poll(timeout_ms=_POLL_MS).items():
                    for message in messages:
                        only = _ONLY.get(partition.topic.removeprefix(f"{names.prefix}."))
                        self._print(message.value, message.timestamp, only)
        finally:
            consumer.close()

    def _print(self, value: bytes | None, at_ms: int, only: type | None) -> None:
        if value is None or value in self._printed:
            return
        try:
            record = codec.decode(value)
        except (MalformedRecord, NewerRecord):
            return
        if only is not None and not isinstance(record, only):
            return
        if isinstance(record, Command):
            if not self._verifier.accepts(record):
                return  # without our signature: the executor writes it to the dead-letter topic
            _remember(self._commands, record.id, record)
        if isinstance(record, Incident):
            _remember(self._last_steps, record.id, record.verdict.step)
        inner = getattr(record, "record", record)
        _remember(self._printed, value, None)
        command = self._commands.get(getattr(inner, "command", ""))
        last_step = self._last_steps.get(command.incident) if command is not None else None
        if line := activity.line(record, at_ms, command=command, last_step=last_step):
            self._say(line)


def _remember(known: dict[Any, Any], key: str | bytes, value: object) -> None:
    known[key] = value
    if len(known) > _KEPT:
        del known[next(iter(known))]
