"""Reads `events` and `specs` from their beginning into a census, in its own thread. Shell.

The reader belongs to no consumer group and commits no offsets: it reads everything again at each start.
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
    """Keeps the census of all jobs up to date. The methods that read the census work in any thread."""

    def __init__(
        self,
        settings: Settings,
        dead_letter: Callable[[Any, Exception], None] = lambda _message, _error: None,
        accepts: Callable[[Spec], bool] = lambda _spec: False,
    ) -> None:
        """Calls `dead_letter` for each unreadable message of `specs`, again after each start.

        `accepts` tells whether the installation signed a spec. Only such a one takes the place of another.
        """
        super().__init__(name="census", daemon=True)
        self._topics = settings.topic_names
        self._consumer: Any = plain_consumer(settings.kafka, **LASTING, **PATIENT)
        names = (self._topics.events, self._topics.specs)
        self._partitions = [
            TopicPartition(n, p) for n in names for p in self._consumer.partitions_for_topic(n) or ()
        ]
        self._consumer.assign(self._partitions)
        self._consumer.seek_to_beginning(*self._partitions)
        self._dead_letter, self._accepts = dead_letter, accepts
        self._lock = threading.Lock()
        self._census = Census()
        self._specs: dict[str, Spec] = {}
        self._latest_specs: dict[bytes, str] = {}  # the hash of each job's last spec, by the message's key
        self._partition_of_key: dict[bytes, int] = {}
        self._read: dict[Any, int] = dict.fromkeys(self._partitions, 0)
        self._stopping = threading.Event()
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._turn()
        except BaseException as error:
            # The main thread raises it too.
            self.failure = error
        finally:
            self._consumer.close()

    def stop(self) -> None:
        self._stopping.set()

    def catch_up(self, ends: Mapping[Any, int], patience_s: float) -> None:
        """Returns once the census has folded everything below these offsets.

        Raises:
            ServiceUnreachable: the reader died, or needs longer than `patience_s` seconds.
        """
        deadline = time.monotonic() + patience_s
        while any(self._read.get(partition, 0) < end for partition, end in ends.items()):
            if self.failure is not None or time.monotonic() > deadline:
                raise ServiceUnreachable(
                    f"the executor did not reach the ends of its topics: {self.failure or 'too slow'}",
                    where=self._topics.events,
                    remedy="the executor starts again by itself; it has done nothing meanwhile",
                )
            time.sleep(_PAUSE_S)

    def ends(self) -> Mapping[Any, int]:
        """The end offsets of the topics now. Call it only before the thread starts: both use one consumer."""
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
        """The outcome `accepted` of each command that has no later outcome yet."""
        with self._lock:
            return tuple(self._census.accepted.values())

    def starts(self, kind: str) -> tuple[JobStart, ...]:
        """Copies of all starts on this kind of scheduler; the thread does not change them."""
        with self._lock:
            return tuple(replace(start) for start in self._census.starts(kind))

    def start_of(self, job: str, incarnation: str) -> JobStart | None:
        """A copy of one start of the job; None if `events` does not name it."""
        with self._lock:
            start = self._census.jobs.get(job, {}).get(incarnation)
            return replace(start) if start else None

    def spec(self, digest: str) -> Spec | None:
        """The spec of that hash, or the one that replaces it; None if the topic has none.

        The caller must check its signature.
        """
        with self._lock:
            return self._specs.get(digest)

    def spec_of(self, job: str) -> Spec | None:
        """The spec that the job's latest spec event names, unchecked as in `spec`; None without one."""
        with self._lock:
            event = self._census.specs.get(job)
            return self._specs.get(event.spec) if event else None

    def environment_files(self) -> frozenset[str]:
        """The paths of the environments that a job's last spec names, or the spec of its last start."""
        with self._lock:
            started = [event.spec for event in self._census.specs.values()]
            named = [self._specs.get(digest) for digest in (*self._latest_specs.values(), *started)]
        return frozenset(spec.environment_file for spec in named if spec and spec.environment_file)

    def open_specs(self) -> tuple[Spec, ...]:
        """The last spec of each job where it holds variables itself, unchecked as in `spec`."""
        with self._lock:
            latest = [self._specs[digest] for digest in self._latest_specs.values() if digest in self._specs]
        return tuple(spec for spec in latest if spec.environment)

    def _forget(self, message: Any) -> None:
        """Forgets a job's spec: somebody has deleted it from the topic."""
        if message.topic != self._topics.specs or message.key is None:
            return
        digest = self._latest_specs.pop(message.key, "")
        record = self._specs.pop(digest, None)
        if record is not None:
            self._specs.pop(record.replaces, None)

    def _turn(self) -> None:
        polled = self._consumer.poll(timeout_ms=_POLL_MS, max_records=1000)
        at = time.monotonic()
        for partition, messages in polled.items():
            with self._lock:
                for message in messages:
                    if message.value is None:
                        self._forget(message)
                        continue
                    if not self._in_its_partition(message):
                        continue
                    if partition.topic == self._topics.events:
                        self._census.apply(message.value, at, message.key)
                    else:
                        self._keep(message)
        # The position, not the last offset: the markers of transactions and compaction leave holes.
        for partition in self._partitions:
            self._read[partition] = self._consumer.position(partition)

    def _in_its_partition(self, message: Any) -> bool:
        """Whether the record of a job lies in that job's partition; detect dead-letters any other."""
        if message.topic != self._topics.events or message.key is None:
            return True
        partition = self._partition_of_key.get(message.key)
        if partition is None:
            count = sum(known.topic == message.topic for known in self._partitions)
            partition = self._partition_of_key[message.key] = partition_of(message.key, count)
        return bool(partition == message.partition)

    def _keep(self, message: Any) -> None:
        try:
            record = decode(message.value)
            if not isinstance(record, Spec):
                raise MisdirectedRecord(f"a {type(record).__name__} has no place among the specs")
        except (MalformedRecord, NewerRecord) as error:
            self._dead_letter(message, error)
        else:
            digest = spec_hash(record)
            self._specs[digest] = record
            if record.replaces and self._accepts(record):
                self._specs[record.replaces] = record
            if message.key is not None:
                self._latest_specs[message.key] = digest
