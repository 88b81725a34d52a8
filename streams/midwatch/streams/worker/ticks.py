"""Ticks: records that a partition's owner writes when a timer is due and no other record arrives.

A timer fires only when a record is folded. Of a tick only the append time counts.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Mapping
from typing import Protocol

from faust.types import TP

from midwatch.streams.worker.app import App
from midwatch.streams.worker.fold import Fields, Fold

log = logging.getLogger(__name__)

LOOK_EVERY_S = 0.2
AT_MOST_EVERY_S = 1.0
BROKER_ANSWER_S = 5.0


def is_due(deadline_ms: int, now_ms: int, since_s: float) -> bool:
    """Whether a deadline has passed: `since_s` is our own time since the append time `now_ms` was seen.

    An assignment starts our clock anew, so a tick may then be late but never early.
    """
    return now_ms + since_s * 1000.0 >= deadline_ms


class Ticked(Protocol):
    """An agent whose partitions get ticks.

    `seen` holds, by partition, the highest append time (ms) and our monotonic clock when we first saw it.
    `stopped` holds the partitions that wait for a newer worker.
    """

    @property
    def topic(self) -> str: ...
    @property
    def fold(self) -> Fold: ...
    @property
    def seen(self) -> Mapping[int, tuple[int, float]]: ...
    @property
    def stopped(self) -> Collection[int]: ...
    @property
    def sender_time(self) -> bool: ...
    def owned(self) -> Collection[int]: ...
    def next_offset(self, partition: int) -> int | None: ...
    def partition_state(self, partition: int) -> Fields: ...


class TickWriter:
    """Writes ticks for the owned partitions of an agent whose deadlines have passed."""

    def __init__(self, app: App, agent: Ticked) -> None:
        self._app = app
        self._agent = agent
        self._written: dict[int, float] = {}

    async def run(self) -> None:
        """The task. A tick that cannot be sent crashes the worker, as any failed send does."""
        while not self._app.should_stop:
            await asyncio.sleep(LOOK_EVERY_S)
            if not self._app.rebalancing:
                for partition in tuple(self._agent.owned()):
                    await self._look(partition)

    def _due(self, partition: int) -> bool:
        seen = self._agent.seen.get(partition)
        if seen is None or partition in self._agent.stopped or self._agent.next_offset(partition) is None:
            return False
        deadline = self._agent.fold.next_deadline(self._agent.partition_state(partition))
        now_ms, at = seen
        return deadline is not None and is_due(deadline, now_ms, time.monotonic() - at)

    async def _look(self, partition: int) -> None:
        since = time.monotonic() - self._written.get(partition, -AT_MOST_EVERY_S)
        if since < AT_MOST_EVERY_S or not self._due(partition) or not await self._caught_up(partition):
            return
        self._written[partition] = time.monotonic()
        answer = await self._app.producer.send(
            self._agent.topic, None, self._agent.fold.tick_value(), partition, self._time(partition), None
        )
        await answer
        self._app.counters.ticks += 1

    def _time(self, partition: int) -> float | None:
        """The tick's time in seconds, where the topic keeps it: the partition's time, and never behind it."""
        seen = self._agent.seen.get(partition)
        if seen is None or not self._agent.sender_time:
            return None
        now_ms, at = seen
        return now_ms / 1000 + time.monotonic() - at

    async def _caught_up(self, partition: int) -> bool:
        """Whether all of the log is folded; False if the broker does not answer."""
        tp = TP(self._agent.topic, partition)
        try:
            async with asyncio.timeout(BROKER_ANSWER_S):
                ends = await self._app.consumer.highwaters(tp)
        except Exception as error:
            log.debug("the broker did not give the end of %s: %r", tp, error)
            return False
        return self._agent.next_offset(partition) == ends[tp]
