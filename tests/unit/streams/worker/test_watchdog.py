"""A worker that stands still ends itself; one that is idle, or cannot know, does not."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from faust.types import TP

from midwatch.streams.worker import watchdog
from midwatch.streams.worker.app import App
from midwatch.streams.worker.counters import Counters
from midwatch.streams.worker.health import HealthFile, trouble_of
from midwatch.streams.worker.watchdog import Deafness, LagWatch, LoopWatch, Stillness

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


def test_a_partition_that_waits_while_others_are_worked_off_has_ten_times_the_patience() -> None:
    still = Stillness()
    busy = [{ONE: 5, TWO: 10 * number} for number in range(13)]
    assert look(still, busy, {ONE: 8, TWO: 1000})[1] == pytest.approx(6.0)
    level = [{ONE: 5, TWO: 1000 + number} for number in range(13)]
    assert look(still, level, {ONE: 8, TWO: 1000})[1] == pytest.approx(71.0), "others are read to their ends"


def test_a_partition_that_was_given_up_is_forgotten() -> None:
    still = Stillness()
    look(still, [{ONE: 5}] * 3, {ONE: 8})
    assert still.look({}, {}, 5.0)[1] == 0.0


def test_a_consumer_that_hears_nothing_is_deaf_only_while_the_broker_answers_others() -> None:
    deaf = Deafness()
    kills = [deaf.look(hears=False, broker_answers=True, seconds=10.0) for _ in range(5)]
    assert kills[-1] == 50.0
    assert deaf.look(hears=False, broker_answers=False, seconds=10.0) == 0.0, "it is away: nobody is deaf"
    deaf.look(hears=False, broker_answers=True, seconds=10.0)
    assert deaf.look(hears=True, broker_answers=False, seconds=10.0) == 0.0


class Waiting:
    """A consumer that is level and does not know its coordinator."""

    thread_loop = None

    def assignment(self) -> set[TP]:
        return set()

    def knows_coordinator(self) -> bool:
        return False

    def in_group(self) -> bool:
        return False


class Reading:
    """A consumer of one partition of which nothing is read."""

    thread_loop = None
    member = True

    def assignment(self) -> set[TP]:
        return {TP("logs", 3)}

    async def highwaters(self, *_: TP) -> dict[TP, int]:
        return {TP("logs", 3): 50}

    def knows_coordinator(self) -> bool:
        return True

    def in_group(self) -> bool:
        return self.member


@pytest.mark.capability("X-14")
async def test_the_health_file_hears_what_a_look_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Fit, then outside its group, then a partition that nobody reads, then without an answer of Kafka."""
    monkeypatch.setattr(watchdog, "EVERY_S", 0.01)
    consumer = Reading()
    readers = {"logs": SimpleNamespace(next_offset=lambda _: 50)}
    app = SimpleNamespace(
        consumer=consumer, readers=readers, counters=Counters(), group="g", should_stop=False
    )
    watch = LagWatch(cast(App, app), limit_s=1e9, every_s=0.01)
    tasks = [
        asyncio.ensure_future(watch.run()),
        asyncio.ensure_future(watch.report(HealthFile(tmp_path, "x"))),
    ]

    async def told(trouble: str) -> None:
        async with asyncio.timeout(10):
            while trouble not in (trouble_of(tmp_path, "x", time.monotonic()) or "nothing"):
                await asyncio.sleep(0.01)

    await told("nothing")
    consumer.member = False
    await told("not in its group g")
    consumer.member = True
    monkeypatch.setattr(watchdog, "UNREAD_S", 0.1)
    readers["logs"].next_offset = lambda _: 10
    await told("logs/3 has records and was not read")
    monkeypatch.setattr(consumer, "highwaters", None)
    await told("Kafka does not answer")
    for task in tasks:
        task.cancel()


@pytest.mark.parametrize(("answers", "ended"), [(True, True), (False, False)])
async def test_a_worker_that_never_finds_its_group_again_ends_itself(
    monkeypatch: pytest.MonkeyPatch, answers: bool, ended: bool
) -> None:
    async def broker_answers(_: LagWatch) -> bool:
        return answers

    monkeypatch.setattr(LagWatch, "_broker_answers", broker_answers)
    app = SimpleNamespace(consumer=Waiting(), readers={}, counters=Counters(), group="g", should_stop=False)
    reasons: list[str] = []

    def kill(reason: str) -> None:
        reasons.append(reason)
        app.should_stop = True

    watch = LagWatch(cast(App, app), limit_s=0.05, kill=kill, every_s=0.01)
    with suppress(TimeoutError):
        await asyncio.wait_for(watch.run(), 1.0)
    assert (reasons == ["the consumer of g has no coordinator, but the broker answers others"]) is ended


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "LOOK_EVERY_S", 0.02)
    monkeypatch.setattr(watchdog, "STOP_LIMIT_S", 0.2)


Kills = tuple[list[str], threading.Event, Callable[[str], None]]


@pytest.fixture
def kills() -> Kills:
    reasons: list[str] = []
    killed = threading.Event()

    def kill(reason: str) -> None:
        reasons.append(reason)
        killed.set()

    return reasons, killed, kill


@pytest.mark.usefixtures("quick")
def test_a_blocked_event_loop_ends_the_process(kills: Kills) -> None:
    reasons, killed, kill = kills
    watch = LoopWatch(stopping=lambda: False, limit_s=0.2, kill=kill)

    async def block() -> None:
        turns = asyncio.ensure_future(watch.count_turns())
        await asyncio.sleep(0)
        watch.start()
        assert killed.wait(10)  # in the loop: nothing else runs meanwhile
        turns.cancel()

    asyncio.run(block())
    assert "event loop stood still" in reasons[0]


@pytest.mark.usefixtures("quick")
async def test_after_a_crash_a_stop_gets_less_time(kills: Kills, monkeypatch: pytest.MonkeyPatch) -> None:
    reasons, killed, kill = kills
    monkeypatch.setattr(watchdog, "STOP_LIMIT_S", 1e9)
    monkeypatch.setattr(watchdog, "CRASH_LIMIT_S", 0.1)
    watch = LoopWatch(stopping=lambda: True, crashed=lambda: True, limit_s=1e9, kill=kill)
    watch.start()
    assert await asyncio.to_thread(killed.wait, 10)
    assert "after a crash" in reasons[0]


@pytest.mark.usefixtures("quick")
async def test_a_stop_that_does_not_end_is_ended(kills: Kills) -> None:
    reasons, killed, kill = kills
    watch = LoopWatch(stopping=lambda: True, kill=kill)
    turns = asyncio.ensure_future(watch.count_turns())
    watch.start()
    assert await asyncio.to_thread(killed.wait, 10)
    turns.cancel()
    assert "after a request to stop" in reasons[0]
