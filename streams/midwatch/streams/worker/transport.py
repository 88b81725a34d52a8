"""The consumer and producer under Faust: they seek to and commit the positions of the readers.

Faust's acknowledgements repeat and lose records. Each hook here replaces a place where Faust uses them. The
hooks are not Faust's public interface, so pyproject pins the versions.
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
"""How long the broker may hold a fetch without new records; Faust's 1.5 s slow the start."""


class PartitionReader(Protocol):
    """The reader of one topic in this process; it alone knows its positions."""

    topic: str

    async def assign(self, bounds: Mapping[int, Bounds]) -> Mapping[int, Position]:
        """Take these partitions over and give the positions to continue at.

        Faust may call it again within one generation, for partitions that this reader already owns.
        """
        ...

    def disown(self, partitions: Collection[int]) -> None:
        """Drop these partitions at once, without waiting for anything."""
        ...

    async def settle(self) -> None:
        """Before partitions are given up: wait for work that the next owner would repeat. May do nothing."""
        ...

    def owned(self) -> Collection[int]: ...

    def next_offset(self, partition: int) -> int | None:
        """The offset that the reader handles next; None if it does not own the partition."""
        ...

    def committable(self, partition: int) -> int | None:
        """The offset that the group may commit for an owned partition; None if there is none yet."""
        ...


class HasReaders(Protocol):
    """The part of the app that the transport needs."""

    readers: Mapping[str, PartitionReader]
    counters: Counters


class ConsumerThread(driver.AIOKafkaConsumerThread):
    """Faust's consumer thread, with a client that survives broken connections and a shorter fetch."""

    def _create_worker_consumer(self, transport: driver.Transport) -> AIOKafkaConsumer:
        consumer = super()._create_worker_consumer(transport)
        consumer._fetch_max_wait_ms = FETCH_WAIT_MS
        patient(consumer._client)
        return consumer


class Consumer(driver.Consumer):
    """Seeks to the readers' positions on every assignment, and commits the offsets that they allow."""

    _group_commits: Mapping[TP, int | None] = {}
    _term: object | None = None
    """The current assignment; None from its revocation until the next one."""

    @property
    def _shared(self) -> HasReaders:
        return cast(HasReaders, self.app)

    def _new_consumer_thread(self) -> ConsumerThread:
        return ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    @property
    def thread_loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop of aiokafka's consumer."""
        loop: asyncio.AbstractEventLoop | None = getattr(self._thread, "thread_loop", None)
        return loop

    def knows_coordinator(self) -> bool:
        """Whether the consumer knows its group's coordinator; also False while the broker is away."""
        consumer = self._thread._consumer
        coordinator = getattr(consumer, "_coordinator", None)
        return getattr(coordinator, "coordinator_id", None) is not None

    def in_group(self) -> bool:
        """Whether the consumer is a member of its group, as far as the broker has told it."""
        coordinator = getattr(self._thread._consumer, "_coordinator", None)
        return self.knows_coordinator() and getattr(coordinator, "generation", -1) >= 0

    async def perform_seek(self) -> None:
        await super().perform_seek()
        # Faust takes the position for the commit; the two differ while an outbox is being published.
        for tp, committed in self._group_commits.items():
            self._committed_offset[tp] = committed

    async def seek_to_committed(self) -> Mapping[TP, int]:
        # Faust takes a seek that outlasts its request timeout for a stopped service. It then silently
        # consumes nothing for ever. So an earlier limit crashes the worker.
        limit_s = self.app.conf.broker_request_timeout * 0.8
        try:
            async with asyncio.timeout(limit_s):
                return await self._seek_readers()
        except Exception as error:
            if self.assignment():
                await self.app.crash(error)
            raise

    async def _seek_readers(self) -> Mapping[TP, int]:
        # A rebalance may happen meanwhile. Faust's fetcher also seeks during one, while aiokafka still gives
        # the old assignment. A reader that gets a revoked partition here would keep it for good.
        term = self._term
        offsets = dict(await super().seek_to_committed())
        owned = {tp for tp in self.assignment() if tp.topic in self._shared.readers}
        if not owned:
            return offsets
        self._group_commits = {tp: offsets.get(tp) for tp in owned}
        starts, ends = await self.earliest_offsets(*owned), await self.highwaters(*owned)
        seeks: dict[TP, int] = {}
        for topic, reader in self._shared.readers.items():
            of_topic = [tp for tp in owned if tp.topic == topic]
            bounds = {tp.partition: Bounds(offsets.get(tp), starts[tp], ends[tp]) for tp in of_topic}
            if term is None or term is not self._term:
                return offsets
            for partition, position in (await reader.assign(bounds)).items():
                seeks[TP(topic, partition)] = position.next_offset
        if term is not self._term:
            return offsets
        await self.seek_wait(seeks)
        offsets.update(seeks)
        self._shared.counters.seeks += 1
        return offsets

    def _filter_tps_with_pending_acks(self, topics: Any = None) -> Iterator[TP]:
        for tp in super()._filter_tps_with_pending_acks(topics):
            if tp.topic not in self._shared.readers:
                yield tp
        for topic, reader in self._shared.readers.items():
            if topics is None or topic in topics:
                yield from (TP(topic, partition) for partition in tuple(reader.owned()))

    def _new_offset(self, tp: TP) -> int | None:
        reader = self._shared.readers.get(tp.topic)
        if reader is None:
            return super()._new_offset(tp)
        lists: tuple[MutableMapping[TP, Any], ...] = (self._acked, self._acked_index, self._gap)
        for acks in lists:  # Faust's lists of acks have no effect here, and would grow for ever
            acks.pop(tp, None)
        return reader.committable(tp.partition) or None

    async def on_stop(self) -> None:
        await self._commit_all_handled()
        await super().on_stop()

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        try:
            await self._commit_all_handled()
        finally:
            self._term = None
            for reader in self._shared.readers.values():
                reader.disown([tp.partition for tp in revoked if tp.topic == reader.topic])
        await super().on_partitions_revoked(revoked)

    async def _commit_all_handled(self) -> None:
        """The last commit of partitions that this worker gives up. It takes half a session at most."""
        try:
            async with asyncio.timeout(self.app.conf.broker_session_timeout / 2):
                await asyncio.gather(*(reader.settle() for reader in self._shared.readers.values()))
                # Faust answers a commit with the end of one under way, which knows no later records.
                while await self.maybe_wait_for_commit_to_finish():
                    pass
                await self.commit()
        except TimeoutError:
            self.log.info("gave up partitions without a last commit; their new owner repeats some records")

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        self._term = object()
        await super().on_partitions_assigned(assigned, generation_id)


class Producer(driver.Producer):
    """An idempotent producer with acks=all, for which Faust has no setting."""

    def _new_producer(self, transactional_id: str | None = None) -> AIOKafkaProducer:
        producer = super()._new_producer(transactional_id)
        patient(producer.client)
        return producer

    def _settings_extra(self) -> Mapping[str, Any]:
        return {"acks": "all", "enable_idempotence": True}
