"""The consumer gives partitions to its readers only for as long as the group gives them to it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from midwatch.streams.worker.counters import Counters
from midwatch.streams.worker.tables.positions import Bounds, Position
from midwatch.streams.worker.transport import Consumer

EVENTS = "events"


class Reading:
    """A reader that notes what is its own."""

    topic = EVENTS

    def __init__(self) -> None:
        self.own: set[int] = set()

    async def assign(self, bounds: Mapping[int, Bounds]) -> Mapping[int, Position]:
        self.own.update(bounds)
        return {partition: Position(0) for partition in bounds}

    def disown(self, partitions: Collection[int]) -> None:
        self.own.difference_update(partitions)

    async def settle(self) -> None:
        pass


class SlowConsumer(Consumer):
    """Knows its assignment at once; the broker tells the ends of the log only when the test says so."""

    def __init__(self, reader: Reading) -> None:
        self.app: Any = SimpleNamespace(
            readers={EVENTS: reader},
            counters=Counters(),
            conf=SimpleNamespace(broker_session_timeout=2.0, broker_request_timeout=90.0),
        )
        self.given: set[TP] = set()
        self.asked, self.answer = asyncio.Event(), asyncio.Event()
        self.sought: list[Mapping[TP, int]] = []
        self._thread: Any = SimpleNamespace(seek_to_committed=self._nothing_committed)

    async def _nothing_committed(self) -> Mapping[TP, int]:
        return {}

    def assignment(self) -> set[TP]:
        return set(self.given)

    async def earliest_offsets(self, *partitions: TP) -> Mapping[TP, int]:
        self.asked.set()
        await self.answer.wait()
        return dict.fromkeys(partitions, 0)

    async def highwaters(self, *partitions: TP) -> Mapping[TP, int]:
        return dict.fromkeys(partitions, 9)

    async def seek_wait(self, partitions: Mapping[TP, int]) -> None:
        self.sought.append(partitions)

    async def commit(self, *_: Any, **__: Any) -> bool:
        return True

    async def maybe_wait_for_commit_to_finish(self) -> bool:
        return False


@pytest.fixture(autouse=True)
def _without_faust(monkeypatch: pytest.MonkeyPatch) -> None:
    async def done(self: Consumer, partitions: set[TP], generation_id: int = 0) -> None:
        pass

    monkeypatch.setattr(driver.Consumer, "on_partitions_revoked", done)
    monkeypatch.setattr(driver.Consumer, "on_partitions_assigned", done)


async def assigned(consumer: SlowConsumer, *partitions: int) -> None:
    """The group gives it these, and no others any more."""
    await consumer.on_partitions_revoked(set(consumer.given))
    consumer.given = {TP(EVENTS, partition) for partition in partitions}
    await consumer.on_partitions_assigned(set(consumer.given))


async def test_what_was_revoked_while_the_broker_answered_is_given_to_no_reader() -> None:
    reader = Reading()
    consumer = SlowConsumer(reader)
    await assigned(consumer, 0, 1)
    seeking = asyncio.create_task(consumer.seek_to_committed())
    await consumer.asked.wait()
    await assigned(consumer, 1)  # which is sought for itself
    consumer.answer.set()
    await seeking
    assert reader.own == set()
    assert consumer.sought == []


async def test_between_two_assignments_no_reader_is_given_anything() -> None:
    reader = Reading()
    consumer = SlowConsumer(reader)
    await assigned(consumer, 0, 1)
    await consumer.on_partitions_revoked(set(consumer.given))  # of which the client still tells
    consumer.answer.set()
    await consumer.seek_to_committed()
    assert reader.own == set()


async def test_what_stays_assigned_is_given_and_sought() -> None:
    reader = Reading()
    consumer = SlowConsumer(reader)
    await assigned(consumer, 0, 1)
    consumer.answer.set()
    await consumer.seek_to_committed()
    assert reader.own == {0, 1}
    assert consumer.sought == [{TP(EVENTS, 0): 0, TP(EVENTS, 1): 0}]


class CommittingConsumer(SlowConsumer):
    """Commits as Faust does: who asks while a commit is under way gets its end, and none of their own."""

    commit = Consumer.commit
    maybe_wait_for_commit_to_finish = Consumer.maybe_wait_for_commit_to_finish

    def __init__(self, reader: Reading) -> None:
        super().__init__(reader)
        self.app.client_only = False
        self.committed: list[int] = []
        self.begun, self.broker = asyncio.Event(), asyncio.Event()
        self._commit_fut = None
        self._loop = asyncio.get_running_loop()
        self.handled = 1

    async def force_commit(self, *_: Any, **__: Any) -> bool:
        handled = self.handled
        self.begun.set()
        await self.broker.wait()
        self.committed.append(handled)
        return True


@pytest.mark.parametrize("end", ["revoked", "stopped"])
async def test_what_was_handled_while_a_commit_was_under_way_is_committed_before_the_end(
    end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def done(self: Consumer) -> None:
        pass

    monkeypatch.setattr(driver.Consumer, "on_stop", done)
    consumer = CommittingConsumer(Reading())
    now_and_then = asyncio.create_task(consumer.commit())
    await consumer.begun.wait()
    consumer.handled = 2
    ending = asyncio.create_task(
        consumer.on_partitions_revoked(set()) if end == "revoked" else consumer.on_stop()
    )
    for _ in range(9):
        await asyncio.sleep(0)  # the readers settle, and the end asks for its commit
    consumer.broker.set()
    await asyncio.gather(now_and_then, ending)
    assert consumer.committed == [1, 2]
