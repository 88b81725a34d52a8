"""A worker that stands still ends itself; one that is idle, or cannot know, does not."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence

import pytest
from faust.types import TP

from midwatch.streams import watchdog
from midwatch.streams.watchdog import LoopWatch, Stillness

ONE, TWO = TP("events", 0), TP("events", 1)


def look(
    still: Stillness, reached: Sequence[Mapping[TP, int | None]], ends: Mapping[TP, int]
) -> tuple[TP, float]:
    """Looks 5 s apart; what the last one said."""
    said = [still.look(now, ends, 5.0) for now in reached]
    return said[-1]


def test_a_partition_with_records_that_nobody_reads_stands_still() -> None:
    assert look(Stillness(), [{ONE: 5, TWO: 9}] * 4, {ONE: 8, TWO: 9}) == (ONE, 15.0)


def test_reading_on_ends_the_stillness() -> None:
    assert look(Stillness(), [{ONE: reached} for reached in (5, 5, 5, 6)], {ONE: 8}) == (ONE, 0.0)


def test_an_idle_partition_never_stands_still() -> None:
    assert look(Stillness(), [{ONE: 8}] * 50, {ONE: 8}) == (ONE, 0.0)


def test_a_partition_that_is_assigned_and_never_taken_up_stands_still() -> None:
    assert look(Stillness(), [{ONE: None}] * 3, {ONE: 0}) == (ONE, 10.0)


def test_a_partition_that_was_given_up_is_forgotten() -> None:
    still = Stillness()
    look(still, [{ONE: 5}] * 3, {ONE: 8})
    assert still.look({}, {}, 5.0)[1] == 0.0


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "LOOK_EVERY_S", 0.02)
    monkeypatch.setattr(watchdog, "STOP_LIMIT_S", 0.2)


Told = tuple[list[str], threading.Event, Callable[[str], None]]


@pytest.fixture
def told() -> Told:
    reasons: list[str] = []
    killed = threading.Event()

    def kill(reason: str) -> None:
        reasons.append(reason)
        killed.set()

    return reasons, killed, kill


@pytest.mark.usefixtures("quick")
def test_a_blocked_event_loop_ends_the_process(told: Told) -> None:
    reasons, killed, kill = told
    watch = LoopWatch(stopping=lambda: False, limit_s=0.2, kill=kill)

    async def block() -> None:
        beat = asyncio.ensure_future(watch.beat())
        await asyncio.sleep(0)
        watch.start()
        assert killed.wait(10)  # in the loop: nothing else runs meanwhile
        beat.cancel()

    asyncio.run(block())
    assert "event loop stood still" in reasons[0]


@pytest.mark.usefixtures("quick")
async def test_a_stop_that_does_not_end_is_ended(told: Told) -> None:
    reasons, killed, kill = told
    watch = LoopWatch(stopping=lambda: True, kill=kill)
    beat = asyncio.ensure_future(watch.beat())
    watch.start()
    assert await asyncio.to_thread(killed.wait, 10)
    beat.cancel()
    assert "asked to stop" in reasons[0]
