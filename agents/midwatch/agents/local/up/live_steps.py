"""Prints every step of every job while `up` runs, as soon as the topics hold it."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from midwatch.agents import activity
from midwatch.agents.local.up.processes import Say
from midwatch.agents.signing import ensure_keys
from midwatch.streams.errors import MalformedRecord, NewerRecord
from midwatch.streams.records import Command, Decision, Incident, Outcome, SchedulerFact, codec
from midwatch.streams.services.kafka_client import plain_consumer
from midwatch.streams.services.reachable import kafka_log
from midwatch.streams.settings.schema import Settings

_POLL_MS = 500
_AGAIN_S = 2.0
_PATIENCE_S = 2.0
"""So long an outcome waits for its command, which another topic holds: only the command has its number."""
_KEPT = 1000
"""How many it remembers: commands and last steps for their outcomes, and records to print none twice."""


_ONLY: dict[str, type] = {"events": SchedulerFact, "decisions": Decision}
"""What it prints of a topic. All else of it stands in `incidents` too, whose order counts."""


class ReadMessage(NamedTuple):
    """One message of a topic, and when it was read, in seconds of a clock that never goes back."""

    value: bytes | None
    at_ms: int
    only: type | None
    read_s: float


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
            waiting: Sequence[ReadMessage] = ()
            while not self._over.is_set():
                polled, now_s = consumer.poll(timeout_ms=_POLL_MS), time.monotonic()
                read = [
                    ReadMessage(each.value, each.timestamp, only, now_s)
                    for partition, messages in polled.items()
                    for only in (_ONLY.get(partition.topic.removeprefix(f"{names.prefix}.")),)
                    for each in messages
                ]
                waiting = self.print_all([*waiting, *read], now_s)
            self.print_all(waiting, math.inf)
        finally:
            consumer.close()

    def print_all(self, messages: Iterable[ReadMessage], now_s: float) -> list[ReadMessage]:
        """Print them in the order of their times, whatever topic each is of.

        Returns the outcomes that still wait for their commands. Give them again with the next messages.
        """
        in_order = sorted(messages, key=lambda each: each.at_ms)
        known = [(each, record) for each in in_order if (record := self._record(each)) is not None]
        for _, record in known:
            if isinstance(record, Command):
                _remember(self._commands, record.id, record)
        waiting = []
        for message, record in known:
            inner = getattr(record, "record", record)
            unknown = isinstance(inner, Outcome) and inner.command not in self._commands
            if unknown and now_s - message.read_s < _PATIENCE_S:
                waiting.append(message)
            else:
                self._print(message, record)
        return waiting

    def _record(self, message: ReadMessage) -> object | None:
        """What the message holds; None if it is not to be printed."""
        if message.value is None:
            return None
        try:
            record: object = codec.decode(message.value)
        except (MalformedRecord, NewerRecord):
            return None
        if message.only is not None and not isinstance(record, message.only):
            return None
        if isinstance(record, Command) and not self._verifier.accepts(record):
            return None  # without our signature: the executor writes it to the dead-letter topic
        return record

    def _print(self, message: ReadMessage, record: object) -> None:
        if message.value is None or message.value in self._printed:
            return
        if isinstance(record, Incident):
            _remember(self._last_steps, record.id, record.verdict.step)
        inner = getattr(record, "record", record)
        _remember(self._printed, message.value, None)
        command = self._commands.get(getattr(inner, "command", ""))
        last_step = self._last_steps.get(command.incident) if command is not None else None
        if line := activity.line(record, message.at_ms, command=command, last_step=last_step):
            self._say(line)


def _remember(known: dict[Any, Any], key: str | bytes, value: object) -> None:
    known[key] = value
    if len(known) > _KEPT:
        del known[next(iter(known))]
