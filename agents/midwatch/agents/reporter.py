"""Writes the records of the executor and the watcher to Kafka, and a line for each to standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from kafka import KafkaProducer
from kafka.errors import KafkaError

from midwatch.agents import activity
from midwatch.streams.errors import ServiceUnreachable
from midwatch.streams.host.clock import now_ms
from midwatch.streams.records import Command, Outcome, PersonAct, SchedulerFact, Spec, SpecEvent
from midwatch.streams.records.codec import encode
from midwatch.streams.services.kafka_client import LASTING, abandon
from midwatch.streams.services.reachable import kafka_options
from midwatch.streams.settings.schema import Settings
from midwatch.streams.telemetry.trace_ids import TRACEPARENT, traceparent_of
from midwatch.streams.worker.counters import Counters
from midwatch.streams.worker.fold import Message, dead_letter
from midwatch.streams.worker.refusals import refusal

ACKNOWLEDGED_S = 30.0
Observer = Callable[[object, Command | None], None]
"""Gets a record, and the command of an outcome if it is known. It must not raise."""


class Reporter:
    """Sends records to Kafka. Each call returns once Kafka has the record. Several threads may share it."""

    def __init__(self, settings: Settings) -> None:
        self._topics = settings.topic_names
        self._where = ", ".join(settings.kafka.bootstrap)
        self.counters = Counters()
        self.observer: Observer | None = None
        """Sees each record of a job that Kafka has taken."""
        self._traces = bool(settings.telemetry.otlp)
        self._producer: Any = KafkaProducer(
            **kafka_options(settings),
            **LASTING,
            acks="all",
            linger_ms=0,
            max_block_ms=int(ACKNOWLEDGED_S * 1000),
        )

    def event(
        self, record: Outcome | SchedulerFact | SpecEvent | PersonAct, *, command: Command | None = None
    ) -> None:
        """Sends one record of a job to `events`, and logs its line.

        Raises:
            ServiceUnreachable: Kafka does not take the record.
        """
        value = encode(record)
        parent = traceparent_of(value) if self._traces else None
        self._send(self._topics.events, record.job.encode(), value, parent)
        if self.observer is not None:
            self.observer(record, command)
        line = activity.line(record, now_ms(), command=command)
        if line:
            say(line)

    def spec(self, spec: Spec) -> None:
        """Sends a spec, which says how to start the job again, to `specs`. Raises as `event`."""
        self._send(self._topics.specs, spec.job.encode(), encode(spec))

    def command(self, command: Command) -> None:
        """Sends a command that a person asked for to `commands`. Raises as `event`."""
        self._send(self._topics.commands, command.job.encode(), encode(command))

    def dead(self, message: Message, error: Exception) -> None:
        """Sends a message that is unreadable or unproven to the dead-letter topic, counts it and logs it."""
        refused = refusal(error)
        self.counters.refuse(message.topic, refused.kind)
        letter = dead_letter(self._topics.dead, message, refused)
        self._send(letter.topic, letter.key or b"", letter.value or b"")
        place = f"{message.topic}/{message.partition}/{message.offset}"
        at = activity.moment(now_ms())
        say(f"{at} a record went to the dead-letter topic {letter.topic}: {place}: {refused.reason}")

    def close(self) -> None:
        """Drops what Kafka has not taken; the executor sends it again after its next start."""
        abandon(self._producer)

    def _send(self, topic: str, key: bytes, value: bytes, parent: bytes | None = None) -> None:
        headers = [(TRACEPARENT, parent)] if parent is not None else None
        try:
            self._producer.send(topic, key=key, value=value, headers=headers).get(timeout=ACKNOWLEDGED_S)
            self.counters.published += 1
        except KafkaError as error:
            raise ServiceUnreachable(
                f"Kafka did not take a record of {topic}: {error}",
                where=self._where,
                remedy="this process sends it again after its restart",
            ) from error


def received(message: Any) -> Message:
    """A message of a plain Kafka consumer, as a message of the pure core."""
    at = max(message.timestamp, 0)
    return Message(message.topic, message.partition, message.offset, at, at, message.key, message.value)


def say(line: str) -> None:
    """Writes one line to standard error."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def step_line(command: Command, at_ms: int, *, change: str, ids: tuple[str, str], reason: str) -> str:
    """The line of one step of a command: change, action, attempt n of N, old id → new id, reason."""
    old, new = ids
    number = (
        f", {activity.count(command.restart_number, command.restart_limit)}"
        if command.action == "restart"
        else ""
    )
    return (
        f"{activity.moment(at_ms)} {command.job}: {change}, {command.action}{number}, "
        f"id {activity.printable(old) or 'none'} → {activity.printable(new) or 'none'}, "
        f"command {command.id[:12]}, because {activity.printable(reason)}"
    )
