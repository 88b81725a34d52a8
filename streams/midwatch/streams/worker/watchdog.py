"""The last resort: the watchdog kills a worker that stands still, so that its supervisor starts it again.

Kafka does not see a blocked event loop, because another thread sends the consumer's heartbeats. Nor does it
see a partition that the consumer silently stopped reading. Both would keep their partitions for ever.
"""

from __future__ import annotations

import asyncio
import io
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from faust.types import TP

from midwatch.streams.errors import MidwatchError
from midwatch.streams.services.reachable import check_kafka
from midwatch.streams.worker.app import App
from midwatch.streams.worker.health import EVERY_S, STARTING, HealthFile
from midwatch.streams.worker.transport import Consumer

log = logging.getLogger(__name__)

LIMIT_S = 60.0
STOP_LIMIT_S = 20.0
"""The watchdog kills a worker that has not stopped this long after the request; its state is always safe."""
CRASH_LIMIT_S = 5.0
"""The same after a crash: until the process is gone, nobody reads its partitions."""
LOOK_EVERY_S = 1.0
BROKER_ANSWER_S = 5.0
UNREAD_S = 20.0
"""Seconds without a read of a partition with records, after which the worker calls itself unhealthy."""
_LONGEST_LOOK_S = 20.0
BUSY_SHARE = 0.1
"""How much a second counts for an unread partition while the worker reads other partitions that lag.

An overloaded worker may leave one partition waiting for minutes. A kill would only add work.
"""
EXIT_CODE = 70


def die(reason: str) -> None:
    """End the process at once, because a worker that stands still cannot stop itself."""
    log.critical("watchdog: %s; this process ends now and its supervisor must start it again", reason)
    logging.shutdown()
    os._exit(EXIT_CODE)


class LoopWatch:
    """A thread that ends the process when the event loop stands still or a stop does not end.

    It counts its own looks at the loop, never clock time. So a process that was itself stopped (SIGSTOP, a
    suspended machine) goes on.
    """

    def __init__(
        self,
        stopping: Callable[[], bool],
        limit_s: float = LIMIT_S,
        kill: Callable[[str], None] = die,
        *,
        crashed: Callable[[], bool] = lambda: False,
    ) -> None:
        self._stopping = stopping
        self._crashed = crashed
        self._limit_s = limit_s
        self._kill = kill
        self._turns = 0
        self._end = threading.Event()

    async def count_turns(self) -> None:
        """The task in the loop; the thread sees by its count that the loop runs."""
        while True:
            self._turns += 1
            await asyncio.sleep(LOOK_EVERY_S / 2)

    def start(self) -> None:
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    def stop(self) -> None:
        self._end.set()

    def _watch(self) -> None:
        still, stopping, last = 0.0, 0.0, -1
        while not self._end.wait(LOOK_EVERY_S):
            stopping = stopping + LOOK_EVERY_S if self._stopping() else 0.0
            if stopping >= (CRASH_LIMIT_S if self._crashed() else STOP_LIMIT_S):
                cause = "a crash" if self._crashed() else "a request to stop"
                self._kill(f"still running {stopping:.0f} s after {cause}")
                return
            still = still + LOOK_EVERY_S if self._turns == last else 0.0
            last = self._turns
            if still >= self._limit_s:
                self._kill(f"the event loop stood still for {still:.0f} s")
                return


@dataclass(slots=True)
class Stillness:
    """For how long each partition has had unread records while its position did not move."""

    still_s: dict[TP, float] = field(default_factory=dict)
    last: dict[TP, int | None] = field(default_factory=dict)

    def look(
        self, reached: Mapping[TP, int | None], ends: Mapping[TP, int], seconds: float
    ) -> tuple[TP, float]:
        """Add one look, `seconds` after the previous one; give the partition that stood still longest.

        `reached` holds the next offset of each assigned partition; None if the reader has no position yet.
        Call it only with the broker's answer, so that an absent broker never counts as a standstill.
        """
        for tp in self.still_s.keys() - reached.keys():
            del self.still_s[tp]
        lags = {tp for tp, following in reached.items() if following is None or ends[tp] > following}
        moved = {tp for tp, following in reached.items() if self.last.get(tp, -1) != following}
        counted = seconds * BUSY_SHARE if self.last and lags & moved else seconds
        for tp in reached:
            still = tp in lags and tp not in moved
            self.still_s[tp] = self.still_s.get(tp, 0.0) + counted if still else 0.0
        self.last = dict(reached)
        worst = max(self.still_s, key=lambda tp: self.still_s[tp], default=TP("", 0))
        return worst, self.still_s.get(worst, 0.0)


@dataclass(slots=True)
class Deafness:
    """For how long the consumer has had no group coordinator although the broker answers.

    We saw aiokafka 0.14's consumer wait for its coordinator for ever after a broker came back. It was alive
    and outside the group, and it logged nothing.
    """

    deaf_s: float = 0.0

    def look(self, *, hears: bool, broker_answers: bool, seconds: float) -> float:
        """Add one look, `seconds` after the previous one; give the seconds without a coordinator."""
        self.deaf_s = self.deaf_s + seconds if broker_answers and not hears else 0.0
        return self.deaf_s


def _stacks(*loops: asyncio.AbstractEventLoop | None) -> str:
    """The stack of each task of the loops; one of them shows why a partition is not read."""
    text = io.StringIO()
    for loop in loops:
        for task in asyncio.all_tasks(loop):
            task.print_stack(limit=6, file=text)
    return text.getvalue()


class LagWatch:
    """The task that measures lag and finds partitions that stand still."""

    def __init__(
        self, app: App, limit_s: float = LIMIT_S, kill: Callable[[str], None] = die, every_s: float = 5.0
    ) -> None:
        self._app = app
        self._limit_s = limit_s
        self._kill = kill
        self._every_s = every_s
        self._stillness = Stillness()
        self._deafness = Deafness()
        self.trouble = STARTING
        """What the last look found, for the health file: "" if the worker does its work."""

    async def run(self) -> None:
        began = time.monotonic()
        while not self._app.should_stop:
            await asyncio.sleep(self._every_s)
            hears = False
            try:
                async with asyncio.timeout(BROKER_ANSWER_S):
                    reached, ends = await self._measure()
                consumer = cast(Consumer, self._app.consumer)
                hears, in_group = consumer.knows_coordinator(), consumer.in_group()
            except Exception as error:
                log.debug("could not measure the lag: %r", error)
                self.trouble = "Kafka does not answer its consumer"
            else:
                self.trouble = "" if in_group else f"it is not in its group {self._app.group}"
                self._look_for_stillness(reached, ends)
            # A look takes longer without an answer. A process that was stopped (SIGSTOP) looks only once.
            passed, began = min(time.monotonic() - began, _LONGEST_LOOK_S), time.monotonic()
            answers = not hears and await self._broker_answers()
            if self._deafness.look(hears=hears, broker_answers=answers, seconds=passed) >= self._limit_s:
                self._die(
                    f"the consumer of {self._app.group} has no coordinator, but the broker answers others"
                )

    async def report(self, file: HealthFile) -> None:
        """Renews the health file for as long as the event loop runs; the task beside `run`."""
        while True:
            file.write(self.trouble)
            await asyncio.sleep(EVERY_S / 2)

    def _look_for_stillness(self, reached: Mapping[TP, int | None], ends: Mapping[TP, int]) -> None:
        worst, still_s = self._stillness.look(reached, ends, self._every_s)
        if still_s >= UNREAD_S:
            self.trouble = f"{worst.topic}/{worst.partition} has records and was not read for {still_s:.0f} s"
        if still_s >= self._limit_s:
            self._die(f"{worst.topic}/{worst.partition} has records and was not read for {still_s:.0f} s")

    def _die(self, reason: str) -> None:
        consumer_loop = getattr(self._app.consumer, "thread_loop", None)
        stacks = _stacks(None, consumer_loop) if consumer_loop is not None else _stacks(None)
        log.critical("watchdog: the stack of every task:\n%s", stacks)
        self._kill(reason)

    async def _broker_answers(self) -> bool:
        try:
            await asyncio.to_thread(check_kafka, self._app.settings, BROKER_ANSWER_S)
        except MidwatchError:
            return False
        return True

    async def _measure(self) -> tuple[dict[TP, int | None], dict[TP, int]]:
        app = self._app
        reached: dict[TP, int | None] = {}
        for tp in app.consumer.assignment():
            reader = app.readers.get(tp.topic)
            if reader is not None and (tp.topic, tp.partition) not in app.counters.stopped:
                reached[tp] = reader.next_offset(tp.partition)
        ends = dict(await app.consumer.highwaters(*reached)) if reached else {}
        lag = {
            (tp.topic, tp.partition): max(0, ends[tp] - following)
            for tp, following in reached.items()
            if following is not None
        }
        app.counters.measured(lag, time.time())
        return reached, ends
