"""The outbox: records that the script stored go to Kafka in order, and only then leave Redis."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol

from midwatch.streams.failpoints import failpoint
from midwatch.streams.worker.counters import Counters
from midwatch.streams.worker.fold import Send
from midwatch.streams.worker.tables import ids, keys
from midwatch.streams.worker.tables.redis_link import RedisLink

ROUND = 2000
"""Most records of one partition that are in flight at once."""


class SendRecord(Protocol):
    """Hands one record to the producer (acks=all, idempotent); the inner awaitable is Kafka's answer."""

    async def __call__(self, send: Send, headers: list[tuple[str, bytes]], /) -> Awaitable[Any]: ...


class Outbox:
    """The unpublished records of the owned partitions of one table, and the task that publishes them."""

    def __init__(self, link: RedisLink, group: str, topic: str, counters: Counters) -> None:
        self._link = link
        self._group = group
        self._topic = topic
        self._counters = counters
        self._waiting: dict[int, deque[tuple[ids.EntryId, Send]]] = {}
        self._recovered: dict[int, ids.EntryId] = {}
        self._trims: dict[int, ids.EntryId] = {}
        self._work = asyncio.Event()
        self._round_done = asyncio.Event()

    def own(self, partition: int, entries: Iterable[tuple[ids.EntryId, Send]], published_below: int) -> None:
        """Take over a partition with the entries that Redis holds.

        Entries of inputs below `published_below` are already published; they are only removed.
        """
        left: deque[tuple[ids.EntryId, Send]] = deque()
        for entry, send in entries:
            if ids.input_offset(entry) < published_below:
                self._trims[partition] = entry
            else:
                left.append((entry, send))
        self._waiting[partition] = left
        self._recovered.pop(partition, None)
        if left:
            self._recovered[partition] = left[-1][0]
            self._counters.recovered += len(left)
        self._work.set()

    def disown(self, partition: int) -> None:
        self._waiting.pop(partition, None)
        self._recovered.pop(partition, None)
        self._round_done.set()

    def extend(self, partition: int, entries: Iterable[tuple[ids.EntryId, Send]]) -> None:
        """Add entries that the script has just stored; ignored if the partition is no longer owned."""
        waiting = self._waiting.get(partition)
        if waiting is not None:
            waiting.extend(entries)
            self._work.set()

    def first_unpublished(self, partition: int) -> int | None:
        """The offset of the oldest input with a send that Kafka has not acknowledged; None without one."""
        waiting = self._waiting.get(partition)
        return ids.input_offset(waiting[0][0]) if waiting else None

    async def recovered(self) -> None:
        """Wait until all entries that the last assignment found are published."""
        while self._recovered:
            self._round_done.clear()
            await self._round_done.wait()

    async def run(self, send_record: SendRecord, should_stop: Callable[[], bool]) -> None:
        """Publish until the stop. Raises a send's error: the worker must crash and send again from Redis."""
        while not should_stop():
            await self._work.wait()
            self._work.clear()
            todo = {p: list(waiting)[:ROUND] for p, waiting in self._waiting.items() if waiting}
            answers: list[Awaitable[Any]] = []
            for partition, entries in todo.items():
                for entry, send in entries:
                    name = ids.format_id(self._topic, partition, entry)
                    answers.append(await send_record(send, [*send.headers, (ids.HEADER, name)]))
            for answer in answers:
                await answer
            failpoint("published")
            self._counters.published += len(answers)
            for partition, entries in todo.items():
                self._published(partition, entries[-1][0])
            await self._trim()
            self._round_done.set()

    def _published(self, partition: int, last: ids.EntryId) -> None:
        self._trims[partition] = last
        waiting = self._waiting.get(partition)
        while waiting and waiting[0][0] <= last:
            waiting.popleft()
        if waiting:
            self._work.set()
        if partition in self._recovered and self._recovered[partition] <= last:
            del self._recovered[partition]

    async def _trim(self) -> None:
        trims, self._trims = self._trims, {}
        if trims:
            await self._link.patiently(lambda: self._trim_now(trims))

    async def _trim_now(self, trims: Mapping[int, ids.EntryId]) -> None:
        pipe = self._link.client.pipeline(transaction=False)
        for partition, (major, minor) in trims.items():
            name = keys.outbox_key(self._group, self._topic, partition)
            pipe.xtrim(name, minid=ids.format_entry((major, minor + 1)), approximate=False)
        await pipe.execute()
