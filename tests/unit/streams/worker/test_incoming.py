"""Batches of a real Faust stream in memory: every event once and in order, and an idle stream rests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, cast

import faust
import pytest
from faust.events import Event
from faust.types import Message

from midwatch.streams.worker import incoming
from midwatch.streams.worker.incoming import batches

MOST, WITHIN_S = 3, 0.02
PATIENCE_S = 30


class Inlet:
    """A stream that the test feeds. `waits` has how long each wait for the stream may last, in seconds."""

    def __init__(self) -> None:
        self._app = faust.App("unit", store="memory://", broker="kafka://127.0.0.1:1")
        self._app.flow_control.resume()
        self.stream = cast(Any, self._app.channel().stream())
        self.waits: list[float] = []
        wait = self.stream.wait_for_stopped

        def noted(event: Any, *, timeout: float) -> Awaitable[bool]:
            self.waits.append(timeout)
            return cast("Awaitable[bool]", wait(event, timeout=timeout))

        self.stream.wait_for_stopped = noted

    async def feed(self, *values: int) -> None:
        for value in values:
            generation = self._app.consumer_generation_id
            message = Message("t", 0, value, 0.0, 0, {}, b"", b"", None, generation_id=generation)
            await self.stream.channel.put(Event(self._app, None, value, {}, message))

    async def taken(self, read: AsyncIterator[Any], count: int) -> list[list[int]]:
        """The batches of so many events."""
        found: list[list[int]] = []
        while sum(map(len, found)) < count:
            found.append([event.value for event in await anext(read)])
        return found


def played(play: Callable[[Inlet], Awaitable[None]]) -> None:
    """Play a test on a stream of its own."""

    async def whole() -> None:
        inlet = Inlet()
        try:
            await play(inlet)
        finally:
            await inlet.stream.stop()

    asyncio.run(asyncio.wait_for(whole(), PATIENCE_S))


def test_every_event_comes_once_and_in_order_in_batches_of_a_limit() -> None:
    async def play(inlet: Inlet) -> None:
        read = batches(inlet.stream, MOST, WITHIN_S)
        first = asyncio.ensure_future(inlet.taken(read, 10))
        await inlet.feed(*range(10))
        found = await first
        assert [value for batch in found for value in batch] == list(range(10))
        assert max(map(len, found)) == MOST
        for value in range(10, 14):
            await inlet.feed(value)
            assert await inlet.taken(read, 1) == [[value]]

    played(play)


def test_an_idle_stream_waits_for_an_event_and_not_for_the_clock() -> None:
    async def play(inlet: Inlet) -> None:
        read = batches(inlet.stream, MOST, WITHIN_S)
        first = asyncio.ensure_future(inlet.taken(read, 1))
        while not inlet.waits:
            await asyncio.sleep(0)
        assert inlet.waits == [incoming._LOOK_S]
        await inlet.feed(1)
        await first
        assert inlet.waits == [incoming._LOOK_S, WITHIN_S / 2]

    played(play)


def test_a_missed_sign_delays_an_event_and_loses_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incoming, "_LOOK_S", 0.01)

    async def play(inlet: Inlet) -> None:
        add, missed = inlet.stream.add_processor, list[Any]()

        def all_but_the_first(processor: Any) -> None:
            if missed:
                add(processor)
            else:
                missed.append(processor)

        inlet.stream.add_processor = all_but_the_first
        read = batches(inlet.stream, MOST, WITHIN_S)
        first = asyncio.ensure_future(inlet.taken(read, 2))
        await inlet.feed(1, 2)
        assert [value for batch in await first for value in batch] == [1, 2]
        assert len(missed) == 1

    played(play)
