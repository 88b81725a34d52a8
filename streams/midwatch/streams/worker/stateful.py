"""The generic stateful agent: one topic in, state in a Redis table, effects exactly once.

The agent reads raw records and passes them to a pure `Fold`. One script writes the state, the offset and
the outgoing records of a partition. A separate task publishes the outgoing records from the outbox.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any

from faust.types import TP, EventT, StreamT

from midwatch.streams.errors import ConfigurationError, NewerRecord
from midwatch.streams.telemetry.trace_ids import TRACEPARENT, traceparent_of
from midwatch.streams.worker.app import App
from midwatch.streams.worker.fold import PARTITION, ContentMissing, Fields, Fold, Message, Send
from midwatch.streams.worker.incoming import RawRecord, batches, raw
from midwatch.streams.worker.tables.batch import NOW, OWN, Batch
from midwatch.streams.worker.tables.contiguity import HoleInLog, accept
from midwatch.streams.worker.tables.positions import Bounds, Position
from midwatch.streams.worker.tables.redis_link import PATIENCE_S, RedisLink
from midwatch.streams.worker.tables.table import RedisTable
from midwatch.streams.worker.ticks import TickWriter

log = logging.getLogger(__name__)

Fetch = Callable[[str], Awaitable[None]]
"""Puts content, by its hash, where the fold looks for it. Raises NewerRecord if it cannot read it."""

Observer = Callable[[Batch, Sequence[RawRecord]], None]
"""Sees each batch once it is written, with the records that were read for it. It must not raise."""


class StatefulAgent:
    """One stateful agent on its app; it is also the app's reader of the topic."""

    def __init__(
        self,
        app: App,
        fold: Fold,
        table: RedisTable,
        link: RedisLink,
        *,
        marked: bool,
        fetch: Fetch | None = None,
        sender_time: bool = False,
    ) -> None:
        self.topic = table.topic
        self.fold = fold
        self.table = table
        self.sender_time = sender_time
        """Whether the records carry their sender's time, because the topic does not set the append time."""
        self.stopped: dict[int, str] = {}
        self.seen: dict[int, tuple[int, float]] = {}
        """By owned partition: the highest append time (ms), and our monotonic clock when we first saw it."""
        self._app = app
        self._link = link
        self._dead_topic = app.settings.topic_names.dead
        self._marked = marked
        self._fetch = fetch
        self.observer: Observer | None = None

    # -- calls by the consumer

    async def assign(self, bounds: Mapping[int, Bounds]) -> Mapping[int, Position]:
        positions = await self.table.assign(bounds)
        for partition in positions:
            _, shell_state = self.table.partition_state(partition)
            if (now := shell_state.get(NOW)) is not None:
                self._note_time(partition, int(now))
        return positions

    def disown(self, partitions: Collection[int]) -> None:
        self.table.disown(partitions)
        for partition in partitions:
            self.seen.pop(partition, None)
            self.stopped.pop(partition, None)
            self._app.counters.stopped.pop((self.topic, partition), None)

    async def settle(self) -> None:
        """Wait for nothing: a batch in flight is written, or it is fenced and the next owner repeats it."""

    def partition_state(self, partition: int) -> Fields:
        """The fold's state of an owned partition as a whole."""
        return self.table.partition_state(partition)[0]

    def owned(self) -> Collection[int]:
        return self.table.offsets.keys()

    def next_offset(self, partition: int) -> int | None:
        offset = self.table.offsets.get(partition)
        return None if offset is None else offset + 1

    def committable(self, partition: int) -> int | None:
        return self.table.committable(partition)

    # -- the work

    async def run(self, stream: StreamT[Any]) -> None:
        """The body of the Faust agent."""
        worker = self._app.settings.worker
        async for events in batches(stream, worker.batch, worker.within):
            await self.process(events)
            for event in events:
                event.ack()
            if self._app.should_stop:  # an awaited call may have swallowed our cancellation
                return

    async def process(self, events: Sequence[EventT[Any]]) -> None:
        """Fold one batch of any partitions and write it."""
        await self.table.outbox.recovered()
        async with self.table.lock:
            batches: dict[int, Batch] = {}
            accepted = await self._accept(events)
            for partition, (batch, records) in accepted.items():
                await self._fold(partition, batch, records)
                batches[partition] = batch
            landed = await self.table.commit(batches) if batches else set()
            for partition in landed:
                self._account(partition, batches[partition])
                if self.observer is not None:
                    self.observer(batches[partition], accepted[partition][1])
            for partition, batch in batches.items():
                if batch.stopped:
                    self._stop_partition(partition, batch.stopped)

    async def _accept(self, events: Sequence[EventT[Any]]) -> dict[int, tuple[Batch, list[RawRecord]]]:
        counters, parts = self._app.counters, dict[int, list[RawRecord]]()
        for event in events:
            partition = event.message.partition
            current = event.message.generation_id == self._app.consumer_generation_id
            if current and partition in self.table.offsets and partition not in self.stopped:
                parts.setdefault(partition, []).append(raw(event.message))
            else:
                counters.stale += 1
        taken: dict[int, tuple[Batch, list[RawRecord]]] = {}
        for partition, records in parts.items():
            offsets = [record.offset for record in records]
            verdict = accept(self.table.offsets[partition] + 1, offsets)
            if verdict.hole is not None:
                tp = TP(self.topic, partition)
                log_start = (await self._app.consumer.earliest_offsets(tp))[tp]
                if partition not in self.table.offsets:
                    continue  # revoked while the broker answered
                verdict = accept(self.table.offsets[partition] + 1, offsets, log_start)
            if verdict.hole is not None:
                raise HoleInLog(
                    f"offset {offsets[verdict.hole]} arrived, but records before it are missing",
                    where=f"{self.topic}/{partition}",
                    remedy="The input of a table must be a plain topic: neither compacted nor transactional.",
                )
            counters.replayed += verdict.replayed
            if verdict.taken:
                # Create the batch now: the partition may be revoked at any later moment, and is then fenced.
                taken[partition] = (self._batch(partition), [records[index] for index in verdict.taken])
        return taken

    def _batch(self, partition: int) -> Batch:
        return Batch(
            fold=self.fold,
            states=self.table.cached(partition, (PARTITION, OWN)),
            expected=self.table.offsets[partition],
            dead_topic=self._dead_topic,
            mute_below=self.table.mute_below[partition],
            marked=self._marked,
        )

    async def _fold(self, partition: int, batch: Batch, records: Sequence[RawRecord]) -> None:
        for index, record in enumerate(records):
            message = self._message(batch, record)
            if missing := batch.missing(message):
                # Rare once most state is cached: load all keys of the rest of the batch in one round.
                for later in records[index + 1 :]:
                    missing |= batch.missing(self._message(batch, later))
                await self.table.load({partition: missing})
                batch.states.update(self.table.cached(partition, missing))
                batch.missing(message)
            if not await self._apply(batch, message):
                break

    async def _apply(self, batch: Batch, message: Message) -> bool:
        """Apply one record, and fetch the content that the fold asks for."""
        while True:
            try:
                return batch.apply(message)
            except ContentMissing as missing:
                if self._fetch is None:
                    raise
                try:
                    await self._fetch(missing.content)
                except NewerRecord as error:
                    batch.stopped = str(error)
                    return False

    def _message(self, batch: Batch, record: RawRecord) -> Message:
        if not record.append_time and not self.sender_time:
            raise ConfigurationError(
                f"the records of {self.topic} carry the sender's time instead of the broker's append time",
                where=f"topic {self.topic}",
                remedy="Set message.timestamp.type=LogAppendTime on the topic.",
            )
        return record.message(batch.now_ms(record.timestamp_ms))

    def _account(self, partition: int, batch: Batch) -> None:
        counters, tally = self._app.counters, batch.tally
        counters.records += tally.applied + tally.poisoned
        counters.batches += 1
        counters.below_mark += tally.below_mark
        for kind in tally.refused:
            counters.refuse(self.topic, kind)
        counters.muted += tally.muted
        for poison in batch.poisons:
            log.error("wrote a record to the dead-letter topic %s: %s", self._dead_topic, poison)
        if partition in self.table.offsets:
            self._note_time(partition, int(batch.states[OWN][NOW]))

    def _note_time(self, partition: int, now_ms: int) -> None:
        known = self.seen.get(partition)
        if known is None or now_ms > known[0]:
            self.seen[partition] = (now_ms, time.monotonic())

    def _stop_partition(self, partition: int, reason: str) -> None:
        if partition not in self.table.offsets:
            return
        self.stopped[partition] = reason
        self._app.counters.stopped[self.topic, partition] = reason
        self._app.consumer.pause_partitions({TP(self.topic, partition)})
        log.error(
            "partition %s/%d is stopped until this worker is upgraded: %s", self.topic, partition, reason
        )

    async def publish(self) -> None:
        """The task that empties the outbox. A failed send crashes the worker; its next start sends again."""

        traces = bool(self._app.settings.telemetry.otlp)

        async def send_record(send: Send, headers: list[tuple[str, bytes]]) -> Awaitable[Any]:
            if traces and (parent := traceparent_of(send.value)) is not None:
                headers = [*headers, (TRACEPARENT, parent)]
            return await self._app.producer.send(
                send.topic, send.key, send.value, send.partition, None, headers
            )

        await self.table.outbox.run(send_record, lambda: self._app.should_stop)

    async def close(self) -> None:
        await self._link.close()


def stateful_agent(
    app: App,
    fold: Fold,
    *,
    topic: str,
    marked: bool = False,
    redis_patience_s: float = PATIENCE_S,
    table_class: type[RedisTable] = RedisTable,
    fetch: Fetch | None = None,
    sender_time: bool = False,
) -> StatefulAgent:
    """Register an agent that folds `topic` with `fold`; call once per topic, before `run`.

    `marked`: another stateful agent writes the topic, so a high-water mark drops records with a known id. The
    agent writes a record that it cannot fold to the dead-letter topic. If the fold has deadlines, the owner
    of a partition writes ticks into it. `fetch` brings the content, by hash, that the fold asks for.
    `sender_time`: the topic keeps its senders' times, and "now" is the highest of them.
    """
    link = RedisLink(app.settings.redis, app.counters, patience_s=redis_patience_s)
    table = table_class(link, app.group, topic, app.counters)
    agent = StatefulAgent(app, fold, table, link, marked=marked, fetch=fetch, sender_time=sender_time)
    app.keeps_state = True
    app.read(agent, agent.run, tasks=(agent.publish, TickWriter(app, agent).run), close=agent.close)
    return agent
