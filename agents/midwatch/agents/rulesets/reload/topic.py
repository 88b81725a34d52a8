"""Shell: one process reads the topic `rules` by `RulesTopic`, and writes it by `RulesWriter`."""

from __future__ import annotations

import contextlib
import getpass
import logging
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from midwatch.agents.rulesets.content import Content, bundle_hash, content
from midwatch.agents.rulesets.extensions import extensions_of
from midwatch.streams.errors import (
    ConfigurationError,
    MalformedRecord,
    MisdirectedRecord,
    NewerRecord,
    ServiceUnreachable,
)
from midwatch.streams.host.clock import now_ms
from midwatch.streams.records import CURRENT, REFUSED, InForce, RefusedRules, RuleBundle, codec
from midwatch.streams.services.kafka_client import BOUNDED, PATIENT, abandon, plain_consumer
from midwatch.streams.services.reachable import kafka_options
from midwatch.streams.settings.schema import Settings

PATIENCE_S = 30.0
_REQUEST_MS = 10_000
_LARGEST = 16 << 20  # bytes before compression; the broker limits the compressed size
_MISTAKES_SHOWN = 20
_log = logging.getLogger(__name__)

DeadLetterWriter = Callable[[Any, Exception], None]
"""Takes a message of the topic, and the error why it cannot be read."""


@dataclass(frozen=True, slots=True)
class CurrentBundle:
    """The bundle in force, and the offset of its record `in_force`."""

    in_force: InForce
    offset: int


class RulesTopic:
    """Reads the whole topic from its beginning. Not thread-safe. Close it.

    Every call raises ServiceUnreachable where Kafka does not answer.
    """

    def __init__(self, settings: Settings, dead_letter: DeadLetterWriter | None = None) -> None:
        """`dead_letter` takes each unreadable record that should name the bundle in force or a refusal."""
        from kafka import TopicPartition

        self._dead_letter = dead_letter or _log_unreadable
        self.current: CurrentBundle | None = None
        self.refused: RefusedRules | None = None
        """The latest refusal since `current` came into force."""
        self.known: dict[str, int] = {}
        """The offset of each published bundle, by its hash."""
        self._where = ", ".join(settings.kafka.bootstrap)
        self._extensions = settings.extensions
        self._topic = settings.topic_names.rules
        self._tp = TopicPartition(self._topic, 0)
        with _answering(self._where):
            self._consumer = plain_consumer(
                settings.kafka, **BOUNDED, **PATIENT, max_partition_fetch_bytes=_LARGEST
            )
            self._consumer.assign([self._tp])
            self._consumer.seek_to_beginning(self._tp)

    def read_to_end(self, patience_s: float = PATIENCE_S) -> None:
        """Reads all that is in the topic now. Raises ServiceUnreachable after `patience_s` seconds."""
        deadline = time.monotonic() + patience_s
        with _answering(self._where):
            end = self._consumer.end_offsets([self._tp])[self._tp]
        while self._position() < end:
            if time.monotonic() > deadline:
                raise ServiceUnreachable(
                    f"the end of {self._topic} was not reached in {patience_s:.0f} s",
                    where=self._where,
                    remedy="midwatch doctor",
                )
            self.read_on(500)

    def read_on(self, wait_ms: int) -> bool:
        """Reads new records, or waits `wait_ms` milliseconds for one. Returns whether any came."""
        with _answering(self._where):
            messages = self._consumer.poll(timeout_ms=wait_ms).get(self._tp, ())
        for message in messages:
            self._apply(message)
        return bool(messages)

    def bundle(self, hash_: str, patience_s: float = PATIENCE_S) -> Content:
        """The content of a published bundle.

        Raises:
            ServiceUnreachable: it is not in the topic, or Kafka did not give it in `patience_s` seconds.
            NewerRecord: it is there, and this midwatch does not understand it, or lacks a part that it names.
        """
        return content(hash_, self.record(hash_, patience_s), extensions_of(self._extensions))

    def record(self, hash_: str, patience_s: float = PATIENCE_S) -> RuleBundle:
        """The record of a bundle. Raises as `bundle`."""
        offset, position = self.known.get(hash_), self._position()
        deadline = time.monotonic() + patience_s
        with _answering(self._where):
            try:
                if offset is not None:
                    self._consumer.seek(self._tp, offset)
                while offset is not None and time.monotonic() < deadline:
                    for message in self._consumer.poll(timeout_ms=500).get(self._tp, ()):
                        if message.offset == offset:
                            return _bundle_in(hash_, message.value)
            finally:
                self._consumer.seek(self._tp, position)
        raise ServiceUnreachable(
            f"the bundle of rules {hash_} is not in {self._topic}",
            where=self._where,
            remedy="wait, since it may still arrive; if it was deleted, push it again: `midwatch rules push`",
        )

    def close(self) -> None:
        self._consumer.close()

    def _position(self) -> int:
        with _answering(self._where):
            return int(self._consumer.position(self._tp))

    def _apply(self, message: Any) -> None:
        key: bytes = message.key or b""
        if key == REFUSED and message.value is None:
            self.refused = None
        elif key in (CURRENT, REFUSED) and message.value is not None:
            try:
                self._apply_state(key, codec.decode(message.value), message.offset)
            except (MalformedRecord, NewerRecord) as error:
                self._dead_letter(message, error)
        elif message.value is None:
            self.known.pop(key.decode(errors="replace"), None)
        else:
            self.known.setdefault(key.decode(errors="replace"), message.offset)

    def _apply_state(self, key: bytes, record: object, offset: int) -> None:
        if key == CURRENT and isinstance(record, InForce):
            self.current, self.refused = CurrentBundle(record, offset), None
        elif key == REFUSED and isinstance(record, RefusedRules):
            self.refused = record
        else:
            raise MisdirectedRecord(f"a {type(record).__name__} has no place under {key.decode()!r}")


class RulesWriter:
    """Writes bundles into the topic. Each call returns once Kafka has the record. Close it."""

    def __init__(self, settings: Settings) -> None:
        from kafka import KafkaProducer

        self._topic = settings.topic_names.rules
        self._where = ", ".join(settings.kafka.bootstrap)
        self._producer: Any = KafkaProducer(
            **kafka_options(settings),
            acks="all",
            linger_ms=0,
            compression_type="gzip",
            max_request_size=_LARGEST,
            max_block_ms=_REQUEST_MS,
        )

    def publish(self, record: RuleBundle, in_force: InForce, *, known: bool) -> int:
        """Writes the bundle, unless it is `known` there, and puts it in force. Returns the offset of that."""
        if not known:
            self._send(bundle_hash(record).encode(), codec.encode(record))
        return self.put_in_force(in_force)

    def put_in_force(self, in_force: InForce) -> int:
        """Puts a bundle in force that is in the topic already. Returns the offset of the record."""
        return self._send(CURRENT, codec.encode(in_force))

    def refuse(self, refused: RefusedRules) -> None:
        """Tells all readers that an edit or a push was refused. It changes nothing else."""
        self._send(REFUSED, codec.encode(refused))

    def nothing_refused(self) -> None:
        """Takes the refusal back: its mistakes are corrected."""
        self._send(REFUSED, None)

    def close(self) -> None:
        """Drops what Kafka did not take: the call that sent it has raised."""
        abandon(self._producer)

    def _send(self, key: bytes, value: bytes | None) -> int:
        from kafka.errors import KafkaError, MessageSizeTooLargeError

        try:
            answer = self._producer.send(self._topic, value, key=key, partition=0).get(PATIENCE_S)
        except MessageSizeTooLargeError as error:
            raise ConfigurationError(
                f"the bundle of rules is too large for Kafka: {len(value or b'')} bytes before compression",
                where=self._topic,
                remedy="raise max.message.bytes of that topic, or push fewer rules",
            ) from error
        except KafkaError as error:
            raise ServiceUnreachable(
                f"Kafka did not take the rules: {error}", where=self._where, remedy="midwatch doctor"
            ) from error
        return int(answer.offset)


def fetch_bundle(settings: Settings, hash_: str, patience_s: float = PATIENCE_S) -> Content:
    """One bundle, by a separate reader. It waits for the bundle to appear. Raises as `RulesTopic.bundle`."""
    topic, deadline = RulesTopic(settings), time.monotonic() + patience_s
    try:
        topic.read_to_end(patience_s)
        while hash_ not in topic.known and time.monotonic() < deadline:
            topic.read_on(500)
        return topic.bundle(hash_, patience_s)
    finally:
        topic.close()


def refusal_of(by: Any, error: ConfigurationError) -> RefusedRules:
    """The record of a refusal, with as many of its mistakes as a person reads."""
    mistakes = [str(each) for each in getattr(error, "errors", ())] or [str(error)]
    more = [f"and {len(mistakes) - _MISTAKES_SHOWN} more"] if len(mistakes) > _MISTAKES_SHOWN else []
    return RefusedRules(by, who(), now_ms(), (*mistakes[:_MISTAKES_SHOWN], *more))


def who() -> str:
    """The user and the machine of this process, as `user@machine`."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        user = "?"
    return f"{user}@{socket.gethostname()}"[:200]


def _log_unreadable(message: Any, error: Exception) -> None:
    _log.error("%s/%d cannot be read: %s", message.topic, message.offset, error)


@contextlib.contextmanager
def _answering(where: str) -> Iterator[None]:
    from kafka.errors import KafkaError

    try:
        yield
    except KafkaError as error:
        raise ServiceUnreachable(
            f"Kafka does not answer about the rules: {error}", where=where, remedy="midwatch doctor"
        ) from error


def _bundle_in(hash_: str, value: bytes | None) -> RuleBundle:
    try:
        record = codec.decode(value or b"")
    except MalformedRecord as error:
        raise NewerRecord(f"the bundle of rules {hash_} cannot be read: {error}") from error
    if not isinstance(record, RuleBundle):
        raise NewerRecord(f"the record under {hash_} is no bundle of rules")
    return record
