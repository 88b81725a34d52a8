"""What the executor and the watcher say: records on `events`, and one line each on standard error."""

from __future__ import annotations

import sys
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
from midwatch.streams.worker.counters import Counters
from midwatch.streams.worker.fold import Message, dead_letter
from midwatch.streams.worker.refusals import refusal

ACKNOWLEDGED_S = 30.0


class Reporter:
    """Sends and waits: when a call returns, the record is Kafka's. May be used by several threads."""

    def __init__(self, settings: Settings) -> None:
        self._topics = settings.topic_names
        self._where = ", ".join(settings.kafka.bootstrap)
        self.counters = Counters()
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
        """One record of a job to `events`, and its line. Raises ServiceUnreachable if Kafka refuses it."""
        self._send(self._topics.events, record.job.encode(), encode(record))
        said = activity.line(record, now_ms(), command=command)
        if said:
            say(said)

    def spec(self, spec: Spec) -> None:
        """How to start the job again, to `specs`."""
        self._send(self._topics.specs, spec.job.encode(), encode(spec))

    def dead(self, message: Message, error: Exception) -> None:
        """What could not be read or believed: set aside, counted and told of."""
        refused = refusal(error)
        self.counters.refuse(message.topic, refused.kind)
        letter = dead_letter(self._topics.dead, message, refused)
        self._send(letter.topic, letter.key or b"", letter.value or b"")
        place = f"{message.topic}/{message.partition}/{message.offset}"
        at = activity.moment(now_ms())
        say(f"{at} a record was set aside in {letter.topic}: {place}: {refused.reason}")

    def close(self) -> None:
        """What Kafka did not take is told again after the next start."""
        abandon(self._producer)

    def _send(self, topic: str, key: bytes, value: bytes) -> None:
        try:
            self._producer.send(topic, key=key, value=value).get(timeout=ACKNOWLEDGED_S)
        except KafkaError as error:
            raise ServiceUnreachable(
                f"Kafka did not take a record of {topic}: {error}",
                where=self._where,
                remedy="it is sent again after the restart of this process",
            ) from error


def received(message: Any) -> Message:
    """A message of the plain consumers, as the pure core sees one."""
    at = max(message.timestamp, 0)
    return Message(message.topic, message.partition, message.offset, at, at, message.key, message.value)


def say(line: str) -> None:
    """One line for the person at the terminal or the log."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def step_line(command: Command, at_ms: int, *, change: str, ids: tuple[str, str], reason: str) -> str:
    """The line of one step of a rescue: old → new, action, attempt n of N, old id → new id, reason."""
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
