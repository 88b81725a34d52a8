"""The generic stateless agent: records in, sends out, at least once.

The agent commits an offset only when Kafka has acknowledged all sends of the records below it. It crashes
on a failed send. So it may handle a record twice, but loses none. Readers of its output must accept repeats.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from faust.types import EventT, StreamT

from midwatch.streams.failpoints import failpoint
from midwatch.streams.worker.app import App
from midwatch.streams.worker.fold import Message, Send, check_size, dead_letter
from midwatch.streams.worker.incoming import RawRecord, batches, raw
from midwatch.streams.worker.refusals import refusal
from midwatch.streams.worker.tables.contiguity import HoleInLog, accept
from midwatch.streams.worker.tables.positions import Bounds, Position, reader_position

log = logging.getLogger(__name__)

Handler = Callable[[Message], Sequence[Send]]
"""The sends of one record: a function of the record and of immutable side inputs.

An exception dead-letters the record.
"""

BATCH_RECORDS = 64
"""Smaller than the batch of the stateful agents, because these records are large."""
IN_FLIGHT = 500
"""Unanswered sends above which the agent waits for Kafka."""


@dataclass(slots=True)
class PartitionProgress:
    """One owned partition: the next offset, and the records with unacknowledged sends, oldest first.

    `fresh` holds until the first record after an assignment. Only before that record may offsets be missing:
    by retention, or by markers of a foreign transactional producer.
    """

    next_offset: int
    fresh: bool = True
    open_sends: dict[int, int] = field(default_factory=dict)

    def committable(self) -> int:
        """The offset to commit: all records below it are handled, and their sends are in Kafka."""
        return next(iter(self.open_sends), self.next_offset)

    def handled(self, offset: int, sends: int) -> None:
        """Note that a record is handled, with its number of unanswered sends."""
        self.next_offset = offset + 1
        self.fresh = False
        if sends:
            self.open_sends[offset] = sends

    def acknowledged(self, offset: int) -> None:
        """Note that Kafka has one send of that record."""
        left = self.open_sends[offset] - 1
        if left:
            self.open_sends[offset] = left
        else:
            del self.open_sends[offset]


class StatelessAgent:
    """One stateless agent on its app; it is also the app's reader of the topic."""

    def __init__(self, app: App, handle: Handler, *, topic: str) -> None:
        self.topic = topic
        self._app = app
        self._handle = handle
        self._dead_topic = app.settings.topic_names.dead
        self._progress: dict[int, PartitionProgress] = {}
        self._in_flight = 0
        self._answered = asyncio.Event()

    # -- calls by the consumer

    async def assign(self, bounds: Mapping[int, Bounds]) -> Mapping[int, Position]:
        positions: dict[int, Position] = {}
        for partition, bound in bounds.items():
            known = self._progress.get(partition)
            if known is not None:
                positions[partition] = Position(known.next_offset)
                continue
            position = reader_position(bound)
            if bound.committed is not None and bound.committed > bound.log_end:
                log.warning("%s/%d ends before its committed offset: reading it again", self.topic, partition)
            self._app.counters.retention_gap += position.retention_gap
            self._progress[partition] = PartitionProgress(position.next_offset)
            positions[partition] = position
        return positions

    def disown(self, partitions: Collection[int]) -> None:
        for partition in partitions:
            self._progress.pop(partition, None)

    async def settle(self) -> None:
        """Wait for Kafka's answers, so that the next owner repeats no record."""
        while self._in_flight:
            await self._answer()

    def owned(self) -> Collection[int]:
        return self._progress.keys()

    def next_offset(self, partition: int) -> int | None:
        progress = self._progress.get(partition)
        return None if progress is None else progress.next_offset

    def committable(self, partition: int) -> int | None:
        progress = self._progress.get(partition)
        return None if progress is None else progress.committable()

    # -- the work

    async def run(self, stream: StreamT[Any]) -> None:
        """The body of the Faust agent."""
        async for events in batches(stream, BATCH_RECORDS, self._app.settings.worker.within):
            await self.process(events)
            for event in events:
                event.ack()
            if self._app.should_stop:  # an awaited call may have swallowed our cancellation
                return

    async def process(self, events: Sequence[EventT[Any]]) -> None:
        """Handle one batch of any partitions, in order within each of them."""
        parts: dict[int, list[RawRecord]] = {}
        for event in events:
            partition = event.message.partition
            current = event.message.generation_id == self._app.consumer_generation_id
            if current and partition in self._progress:
                parts.setdefault(partition, []).append(raw(event.message))
            else:
                self._app.counters.stale += 1
        for partition, records in parts.items():
            await self._handle_partition(partition, records)
        self._app.counters.batches += 1

    async def _handle_partition(self, partition: int, records: Sequence[RawRecord]) -> None:
        progress = self._progress.get(partition)
        if progress is None:
            return
        offsets = [record.offset for record in records]
        verdict = accept(progress.next_offset, offsets, offsets[0] if progress.fresh else 0)
        self._app.counters.replayed += verdict.replayed
        for index in verdict.taken:
            if self._progress.get(partition) is not progress:
                return
            message = records[index].message(records[index].timestamp_ms)
            sends = self.judge(message)
            failpoint("judged")
            progress.handled(message.offset, len(sends))
            for send in sends:
                await self._send(progress, message.offset, send)
            failpoint("sent")
            self._app.counters.records += 1
        if verdict.hole is not None:
            raise HoleInLog(
                f"offset {offsets[verdict.hole]} arrived, but records before it are missing",
                where=f"{self.topic}/{partition}",
                remedy="Start the worker again: it continues after the last record that it handled.",
            )

    def judge(self, message: Message) -> Sequence[Send]:
        """The sends for one record: the handler's, or a dead letter with the reason."""
        try:
            sends = self._handle(message)
            check_size(sends)
            return sends
        except Exception as error:
            refused = refusal(error)
            place = f"{message.topic}/{message.partition}/{message.offset}"
            log.error(
                "wrote a record to the dead-letter topic %s: %s: %s", self._dead_topic, place, refused.reason
            )
            self._app.counters.refuse(message.topic, refused.kind)
            return (dead_letter(self._dead_topic, message, refused),)

    async def _send(self, progress: PartitionProgress, offset: int, send: Send) -> None:
        while self._in_flight >= IN_FLIGHT:
            await self._answer()
        answer = asyncio.ensure_future(
            await self._app.producer.send(
                send.topic, send.key, send.value, send.partition, None, list(send.headers)
            )
        )
        self._in_flight += 1
        answer.add_done_callback(lambda done: self._done(progress, offset, done))

    def _done(self, progress: PartitionProgress, offset: int, answer: asyncio.Future[Any]) -> None:
        self._in_flight -= 1
        self._answered.set()
        error = asyncio.CancelledError() if answer.cancelled() else answer.exception()
        if error is None:
            failpoint("acknowledged")
            progress.acknowledged(offset)
            self._app.counters.published += 1
        elif not self._app.should_stop:
            asyncio.ensure_future(self._app.crash(error))  # noqa: RUF006 - the process ends with it

    async def _answer(self) -> None:
        self._answered.clear()
        await self._answered.wait()


def stateless_agent(app: App, handle: Handler, *, topic: str) -> StatelessAgent:
    """Register an agent that sends the results of `handle` for each record; call before `run`."""
    agent = StatelessAgent(app, handle, topic=topic)
    app.read(agent, agent.run)
    return agent
