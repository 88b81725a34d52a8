"""The last resort: a worker that stands still is killed, so that its supervisor starts it again.

A blocked event loop is invisible to Kafka (heartbeats come from another thread), and so is a partition
that silently stopped being read: both hold their partitions for ever and do nothing.
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
from midwatch.streams.worker.transport import Consumer

log = logging.getLogger(__name__)

LIMIT_S = 60.0
STOP_LIMIT_S = 20.0
"""A worker that was asked to stop is ended after this, stopped or not; its state bears it at any moment."""
CRASH_LIMIT_S = 5.0
"""The same after a crash: until it is gone nobody reads its partitions."""
LOOK_EVERY_S = 1.0
BROKER_ANSWER_S = 5.0
_LONGEST_LOOK_S = 20.0
BUSY_SHARE = 0.1
"""What a second counts for a partition that is not read while the worker works off others that lag too: with
more to do than it can, one of them may have to wait for its turn for minutes, and a kill would only add work.
"""
EXIT_CODE = 70


def die(reason: str) -> None:
    """End the process at once: what stands still cannot be asked to stop."""
    log.critical("watchdog: %s; this process ends now and must be started again", reason)
    logging.shutdown()
    os._exit(EXIT_CODE)


class LoopWatch:
    """A thread that counts its own looks at a beat of the event loop, and at a stop that does not end.

    It counts looks, never clock time: a process that was stopped (SIGSTOP, a suspended machine) goes on.
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
        self._beats = 0
        self._end = threading.Event()

    async def beat(self) -> None:
        """The task in the loop."""
        while True:
            self._beats += 1
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
                why = "crashed" if self._crashed() else "asked to stop"
                self._kill(f"{why}, and not stopped after {stopping:.0f} s")
                return
            still = still + LOOK_EVERY_S if self._beats == last else 0.0
            last = self._beats
            if still >= self._limit_s:
                self._kill(f"the event loop stood still for {still:.0f} s")
                return


@dataclass(slots=True)
class Stillness:
    """For how long each partition has had records to read and read none."""

    still_s: dict[TP, float] = field(default_factory=dict)
    last: dict[TP, int | None] = field(default_factory=dict)

    def look(
        self, reached: Mapping[TP, int | None], ends: Mapping[TP, int], seconds: float
    ) -> tuple[TP, float]:
        """Take note of one look, `seconds` after the one before; the partition that stands stillest.

        `reached` holds the next offset of each assigned partition, None where none was taken up. Only
        looks that had the broker's answer count, so an absent broker is never our standstill.
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
    """For how long our consumer has known nothing of its group while the broker answered others.

    After a broker came back, aiokafka 0.14's consumer was seen to wait for its coordinator for ever: alive,
    out of the group, and with nothing in its log.
    """

    deaf_s: float = 0.0

    def look(self, *, hears: bool, broker_answers: bool, seconds: float) -> float:
        """Take note of one look, `seconds` after the one before."""
        self.deaf_s = self.deaf_s + seconds if broker_answers and not hears else 0.0
        return self.deaf_s


def _stacks(*loops: asyncio.AbstractEventLoop | None) -> str:
    """Where each task of the loops waits: what a partition that is not read waits for is among it."""
    text = io.StringIO()
    for loop in loops:
        for task in asyncio.all_tasks(loop):
            task.print_stack(limit=6, file=text)
    return text.getvalue()


class LagWatch:
    """The task that measures lag and looks for partitions that stand still."""

    def __init__(
        self, app: App, limit_s: float = LIMIT_S, kill: Callable[[str], None] = die, every_s: float = 5.0
    ) -> None:
        self._app = app
        self._limit_s = limit_s
        self._kill = kill
        self._every_s = every_s
        self._stillness = Stillness()
        self._deafness = Deafness()

    async def run(self) -> None:
        began = time.monotonic()
        while not self._app.should_stop:
            await asyncio.sleep(self._every_s)
            hears = False
            try:
                async with asyncio.timeout(BROKER_ANSWER_S):
                    reached, ends = await self._measure()
                hears = cast(Consumer, self._app.consumer).knows_coordinator()
            except Exception as error:
                log.debug("no lag measured: %r", error)
            else:
                self._look_for_stillness(reached, ends)
            # Looks take longer where nobody answers; a process that was stopped (SIGSTOP) looks once.
            passed, began = min(time.monotonic() - began, _LONGEST_LOOK_S), time.monotonic()
            answers = not hears and await self._broker_answers()
            if self._deafness.look(hears=hears, broker_answers=answers, seconds=passed) >= self._limit_s:
                self._die(f"the consumer of {self._app.group} hears nothing of a broker that answers others")

    def _look_for_stillness(self, reached: Mapping[TP, int | None], ends: Mapping[TP, int]) -> None:
        worst, still_s = self._stillness.look(reached, ends, self._every_s)
        if still_s >= self._limit_s:
            self._die(f"{worst.topic}/{worst.partition} has records and was not read for {still_s:.0f} s")

    def _die(self, reason: str) -> None:
        theirs = getattr(self._app.consumer, "thread_loop", None)
        told = _stacks(None, theirs) if theirs is not None else _stacks(None)
        log.critical("watchdog: every task stands where it stands:\n%s", told)
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
        app.counters.lag = {
            (tp.topic, tp.partition): max(0, ends[tp] - following)
            for tp, following in reached.items()
            if following is not None
        }
        return reached, ends
