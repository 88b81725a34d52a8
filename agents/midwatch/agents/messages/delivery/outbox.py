"""The outbox of the messages: what is to be told waits in Redis until its channel has taken it.

Unlike the base class it takes entries out one by one, because a channel that hangs must not hold up another.
An entry is deleted only behind its delivery. A kill between the two sends it again, with the same id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from midwatch.agents.messages.delivery.lanes import Lanes
from midwatch.agents.messages.fold import notice_of
from midwatch.agents.messages.routing import CHANNEL
from midwatch.streams.failpoints import failpoint
from midwatch.streams.worker.counters import Counters
from midwatch.streams.worker.fold import Send
from midwatch.streams.worker.tables import ids, keys
from midwatch.streams.worker.tables.outbox import Outbox, SendRecord
from midwatch.streams.worker.tables.redis_link import RedisLink
from midwatch.streams.worker.tables.table import RedisTable


class ChannelOutbox(Outbox):
    """The undelivered entries of the owned partitions, by partition, each until it is delivered."""

    lanes: Lanes

    def __init__(self, link: RedisLink, group: str, topic: str, counters: Counters) -> None:
        super().__init__(link, group, topic, counters)
        self._open: dict[int, dict[ids.EntryId, Send]] = {}
        self._new: asyncio.Queue[tuple[int, ids.EntryId, Send]] = asyncio.Queue()
        self._to_delete: list[tuple[int, ids.EntryId]] = []

    def own(self, partition: int, entries: Iterable[tuple[ids.EntryId, Send]], published_below: int) -> None:
        self._open[partition] = {}
        found = list(entries)
        self._to_delete += ((partition, e) for e, _ in found if ids.input_offset(e) < published_below)
        left = [(e, send) for e, send in found if ids.input_offset(e) >= published_below]
        self._counters.recovered += len(left)
        self.extend(partition, left)

    def disown(self, partition: int) -> None:
        self._open.pop(partition, None)

    def extend(self, partition: int, entries: Iterable[tuple[ids.EntryId, Send]]) -> None:
        waiting = self._open.get(partition)
        if waiting is None:
            return
        for entry, send in entries:
            waiting[entry] = send
            self._new.put_nowait((partition, entry, send))

    def first_unpublished(self, partition: int) -> int | None:
        waiting = self._open.get(partition)
        return ids.input_offset(min(waiting)) if waiting else None

    async def recovered(self) -> None:
        """Wait for nothing: the fold goes on while a channel does not answer."""

    async def run(self, send_record: SendRecord, should_stop: Callable[[], bool]) -> None:
        """Hand entries to their channels until the stop. A dead letter goes to Kafka."""
        async with asyncio.TaskGroup() as tasks:
            self.lanes.start(tasks)
            while not should_stop():
                await self._delete(self._to_delete)
                self._to_delete = []
                partition, entry, send = await self._new.get()
                if not send.topic.startswith(CHANNEL):
                    await self._to_kafka(send_record, partition, entry, send)
                    continue
                self.lanes.put(
                    send.topic.removeprefix(CHANNEL),
                    notice_of(send),
                    wanted=self._wanted(partition, entry, send),
                    delivered=self._delivered(partition, entry),
                )

    def _wanted(self, partition: int, entry: ids.EntryId, send: Send) -> Callable[[], bool]:
        return lambda: self._open.get(partition, {}).get(entry) is send

    def _delivered(self, partition: int, entry: ids.EntryId) -> Callable[[], Awaitable[None]]:
        async def delivered() -> None:
            failpoint("told")
            self._counters.published += 1
            await self._delete([(partition, entry)])
            self._open.get(partition, {}).pop(entry, None)

        return delivered

    async def _to_kafka(
        self, send_record: SendRecord, partition: int, entry: ids.EntryId, send: Send
    ) -> None:
        name = ids.format_id(self._topic, partition, entry)
        await (await send_record(send, [*send.headers, (ids.HEADER, name)]))
        await self._delete([(partition, entry)])
        self._open.get(partition, {}).pop(entry, None)

    async def _delete(self, entries: list[tuple[int, ids.EntryId]]) -> None:
        if not entries:
            return

        async def delete() -> Any:
            pipe = self._link.client.pipeline(transaction=False)
            for partition, entry in entries:
                name = keys.outbox_key(self._group, self._topic, partition)
                pipe.xdel(name, ids.format_entry(entry))
            return await pipe.execute()

        await self._link.patiently(delete)


class MessagesTable(RedisTable):
    """The table of the messages, with their outbox."""

    def __init__(self, link: RedisLink, group: str, topic: str, counters: Counters) -> None:
        super().__init__(link, group, topic, counters)
        self.outbox: ChannelOutbox = ChannelOutbox(link, group, topic, counters)
