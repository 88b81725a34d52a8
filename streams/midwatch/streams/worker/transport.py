"""Our consumer and producer under Faust: they seek to, and commit, what the readers say.

Faust's own acknowledgements repeat and lose records; every hook here replaces a place where it would
use them. Pinned to the versions in pyproject, because these are not Faust's public interface.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, MutableMapping
from typing import Any, Protocol, cast

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from midwatch.streams.worker.broken_connections import expect_broken_connections, patient
from midwatch.streams.worker.counters import Counters
from midwatch.streams.worker.tables.positions import Bounds, Position

expect_broken_connections()
FETCH_WAIT_MS = 500
"""How long the broker may hold a fetch when there is nothing new; Faust's 1.5 s slow the start."""


class PartitionReader(Protocol):
    """What reads one topic in this process, and alone knows how far it has come."""

    topic: str

    async def assign(self, bounds: Mapping[int, Bounds]) -> Mapping[int, Position]:
        """These partitions are ours from here on: where to read on. Also called again within one
        generation, for partitions that were ours all along.
        """
        ...

    def disown(self, partitions: Collection[int]) -> None:
        """These partitions are no longer ours; at once, without waiting for anything."""
        ...

    async def settle(self) -> None:
        """Before partitions are given up: wait for what would otherwise be done twice. May do nothing."""
        ...

    def owned(self) -> Collection[int]: ...

    def next_offset(self, partition: int) -> int | None:
        """The offset that will be handled next; None if the partition is not ours."""
        ...

    def committable(self, partition: int) -> int | None:
        """What the group may commit for an owned partition; None: nothing yet."""
        ...


class HasReaders(Protocol):
    """The part of our app that the transport needs."""

    readers: Mapping[str, PartitionReader]
    counters: Counters


class ConsumerThread(driver.AIOKafkaConsumerThread):
    """Faust's consumer thread with a patient client and a shorter fetch."""

    def _create_worker_consumer(self, transport: driver.Transport) -> AIOKafkaConsumer:
        consumer = super()._create_worker_consumer(transport)
        consumer._fetch_max_wait_ms = FETCH_WAIT_MS
        patient(consumer._client)
        return consumer


class Consumer(driver.Consumer):
    """Seeks to the readers' positions on every (re)assignment and commits what they say."""

    _group_commits: Mapping[TP, int | None] = {}
    _term: object | None = None
    """The present assignment; None from its revocation until the next one."""

    @property
    def _ours(self) -> HasReaders:
        return cast(HasReaders, self.app)

    def _new_consumer_thread(self) -> ConsumerThread:
        return ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    @property
    def thread_loop(self) -> asyncio.AbstractEventLoop | None:
        """The loop in which aiokafka's consumer works."""
        loop: asyncio.AbstractEventLoop | None = getattr(self._thread, "thread_loop", None)
        return loop

    def knows_coordinator(self) -> bool:
        """Whether it could tell its group that it lives; False while the broker is away, too."""
        consumer = self._thread._consumer
        coordinator = getattr(consumer, "_coordinator", None)
        return getattr(coordinator, "coordinator_id", None) is not None

    async def perform_seek(self) -> None:
        await super().perform_seek()
        # Faust takes the position for the commit; ours may differ while an outbox is being published.
        for tp, committed in self._group_commits.items():
            self._committed_offset[tp] = committed

    async def seek_to_committed(self) -> Mapping[TP, int]:
        # Faust takes a seek that outlasts its request timeout for a stopped service and then consumes
        # nothing for ever, in silence. So: an earlier limit, and a crash.
        limit_s = self.app.conf.broker_request_timeout * 0.8
        try:
            async with asyncio.timeout(limit_s):
                return await self._seek_readers()
        except Exception as error:
            if self.assignment():
                await self.app.crash(error)
            raise

    async def _seek_readers(self) -> Mapping[TP, int]:
        # A rebalance may overtake us, and Faust's fetcher seeks in the midst of one, where aiokafka still
        # tells the old assignment. A reader given a revoked partition would keep it for good.
        term = self._term
        offsets = dict(await super().seek_to_committed())
        owned = {tp for tp in self.assignment() if tp.topic in self._ours.readers}
        if not owned:
            return offsets
        self._group_commits = {tp: offsets.get(tp) for tp in owned}
        starts, ends = await self.earliest_offsets(*owned), await self.highwaters(*owned)
        seeks: dict[TP, int] = {}
        for topic, reader in self._ours.readers.items():
            mine = [tp for tp in owned if tp.topic == topic]
            bounds = {tp.partition: Bounds(offsets.get(tp), starts[tp], ends[tp]) for tp in mine}
            if term is None or term is not self._term:
                return offsets
            for partition, position in (await reader.assign(bounds)).items():
                seeks[TP(topic, partition)] = position.next_offset
        if term is not self._term:
            return offsets
        await self.seek_wait(seeks)
        offsets.update(seeks)
        self._ours.counters.seeks += 1
        return offsets

    def _filter_tps_with_pending_acks(self, topics: Any = None) -> Iterator[TP]:
        for tp in super()._filter_tps_with_pending_acks(topics):
            if tp.topic not in self._ours.readers:
                yield tp
        for topic, reader in self._ours.readers.items():
            if topics is None or topic in topics:
                yield from (TP(topic, partition) for partition in tuple(reader.owned()))

    def _new_offset(self, tp: TP) -> int | None:
        reader = self._ours.readers.get(tp.topic)
        if reader is None:
            return super()._new_offset(tp)
        lists: tuple[MutableMapping[TP, Any], ...] = (self._acked, self._acked_index, self._gap)
        for kept in lists:  # Faust's lists of acks decide nothing here, and would grow for ever
            kept.pop(tp, None)
        return reader.committable(tp.partition) or None

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        limit_s = self.app.conf.broker_session_timeout / 2
        readers = self._ours.readers.values()
        try:
            async with asyncio.timeout(limit_s):
                await asyncio.gather(*(reader.settle() for reader in readers))
                await self.commit()
        except TimeoutError:
            self.log.info("gave partitions up without a last commit; their new owner repeats a little")
        finally:
            self._term = None
            for reader in readers:
                reader.disown([tp.partition for tp in revoked if tp.topic == reader.topic])
        await super().on_partitions_revoked(revoked)

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        self._term = object()
        await super().on_partitions_assigned(assigned, generation_id)


class Producer(driver.Producer):
    """Idempotent, acks=all: Faust has no setting for it."""

    def _new_producer(self, transactional_id: str | None = None) -> AIOKafkaProducer:
        producer = super()._new_producer(transactional_id)
        patient(producer.client)
        return producer

    def _settings_extra(self) -> Mapping[str, Any]:
        return {"acks": "all", "enable_idempotence": True}
