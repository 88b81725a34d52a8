"""Reads `events` and `specs` from their beginning into a census, in a thread of its own. Shell.

It belongs to no consumer group and commits nothing: all that it knows can be read again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from kafka import TopicPartition

from midwatch.agents.signing import spec_hash
from midwatch.agents.watcher.census import Census, JobStart
from midwatch.streams.errors import MalformedRecord, MisdirectedRecord, NewerRecord, ServiceUnreachable
from midwatch.streams.records import Outcome, Spec
from midwatch.streams.records.codec import decode
from midwatch.streams.services.kafka_client import LASTING, PATIENT, plain_consumer
from midwatch.streams.services.partitioner import partition_of
from midwatch.streams.settings.schema import Settings

_POLL_MS = 500
_PAUSE_S = 0.02


class CensusReader(threading.Thread):
    """The census of all jobs, kept up to date. Its questions may be asked from any thread."""

    def __init__(
        self,
        settings: Settings,
        dead_letter: Callable[[Any, Exception], None] = lambda _message, _error: None,
    ) -> None:
        """`dead_letter` is told of each message of `specs` that cannot be read, again after each start."""
        super().__init__(name="census", daemon=True)
        self._topics = settings.topic_names
        self._consumer: Any = plain_consumer(settings.kafka, **LASTING, **PATIENT)
        names = (self._topics.events, self._topics.specs)
        self._partitions = [
            TopicPartition(n, p) for n in names for p in self._consumer.partitions_for_topic(n) or ()
        ]
        self._consumer.assign(self._partitions)
        self._consumer.seek_to_beginning(*self._partitions)
        self._dead_letter = dead_letter
        self._lock = threading.Lock()
        self._census = Census()
        self._specs: dict[str, Spec] = {}
        self._homes: dict[bytes, int] = {}
        self._read: dict[Any, int] = dict.fromkeys(self._partitions, 0)
        self._stopping = threading.Event()
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._turn()
        except BaseException as error:
            # Kept for the main thread, which must die of it too.
            self.failure = error
        finally:
            self._consumer.close()

    def stop(self) -> None:
        self._stopping.set()

    def catch_up(self, ends: Mapping[Any, int], patience_s: float) -> None:
        """Returns when everything below these offsets has been folded.

        Raises:
            ServiceUnreachable: it has not within `patience_s`.
        """
        deadline = time.monotonic() + patience_s
        while any(self._read.get(partition, 0) < end for partition, end in ends.items()):
            if self.failure is not None or time.monotonic() > deadline:
                raise ServiceUnreachable(
                    f"the topics of jobs could not be read to their ends: {self.failure or 'too slow'}",
                    where=self._topics.events,
                    remedy="the executor starts again by itself; nothing was done meanwhile",
                )
            time.sleep(_PAUSE_S)

    def ends(self) -> Mapping[Any, int]:
        """How far the topics reach now; only before the thread is started, whose consumer it asks."""
        ends: Mapping[Any, int] = self._consumer.end_offsets(self._partitions)
        return ends

    @property
    def partitions(self) -> list[Any]:
        """The partitions of `events` and `specs`."""
        return self._partitions

    def incarnations(self, job: str) -> tuple[str, ...]:
        with self._lock:
            return self._census.incarnations(job)

    def accepted(self) -> tuple[Outcome, ...]:
        """What was said of each order that was accepted and has no end yet."""
        with self._lock:
            return tuple(self._census.accepted.values())

    def starts(self, kind: str) -> tuple[JobStart, ...]:
        """Copies, so that the caller can take its time."""
        with self._lock:
            return tuple(replace(start) for start in self._census.starts(kind))

    def spec(self, digest: str) -> Spec | None:
        """The spec of that hash; its signature is the caller's to check."""
        with self._lock:
            return self._specs.get(digest)

    def spec_of(self, job: str) -> Spec | None:
        """The job's present spec, as `spec` tells it; None if it has none, or none has come yet."""
        with self._lock:
            event = self._census.specs.get(job)
            return self._specs.get(event.spec) if event else None

    def _turn(self) -> None:
        polled = self._consumer.poll(timeout_ms=_POLL_MS, max_records=1000)
        at = time.monotonic()
        for partition, messages in polled.items():
            with self._lock:
                for message in messages:
                    if message.value is None or not self._at_home(message):
                        continue
                    if partition.topic == self._topics.events:
                        self._census.apply(message.value, at, message.key)
                    else:
                        self._keep(message)
        # The position and not the last offset: a transaction's marks and compacted records have none.
        for partition in self._partitions:
            self._read[partition] = self._consumer.position(partition)

    def _at_home(self, message: Any) -> bool:
        """Whether the record of a job lies in that job's partition; detect sets aside what does not."""
        if message.topic != self._topics.events or message.key is None:
            return True
        home = self._homes.get(message.key)
        if home is None:
            count = sum(partition.topic == message.topic for partition in self._partitions)
            home = self._homes[message.key] = partition_of(message.key, count)
        return bool(home == message.partition)

    def _keep(self, message: Any) -> None:
        try:
            record = decode(message.value)
            if not isinstance(record, Spec):
                raise MisdirectedRecord(f"a {type(record).__name__} has no place among the specs")
        except (MalformedRecord, NewerRecord) as error:
            self._dead_letter(message, error)
        else:
            self._specs[spec_hash(record)] = record
