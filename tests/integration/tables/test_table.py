"""A Redis table on a real server: ownership, copies, outages, and what waits to be published."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import pytest
import redis

from integration.tables.counting import count_on, record
from midwatch.agents.local.embedded.stack import EmbeddedStack, Endpoints
from midwatch.streams.settings.schema import RedisSettings
from midwatch.streams.worker.counters import Counters
from midwatch.streams.worker.fold import PARTITION, Send
from midwatch.streams.worker.tables import ids
from midwatch.streams.worker.tables.batch import OWN, Batch
from midwatch.streams.worker.tables.positions import AheadOfLog, Bounds
from midwatch.streams.worker.tables.redis_link import RedisLink
from midwatch.streams.worker.tables.table import Fenced, RedisTable

pytestmark = pytest.mark.integration

T = TypeVar("T")
EMPTY = Bounds(None, 0, 100)
MakeTable = Callable[..., RedisTable]


class LosesAnswers(RedisLink):
    """Makes every call twice and forgets the first answer, as a broken connection would."""

    async def patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        await super().patiently(call)
        return await super().patiently(call)


@pytest.fixture
async def table(stack: Endpoints) -> AsyncIterator[MakeTable]:
    """Tables of one group and topic: each is one more worker."""
    group, links = f"detect-{secrets.token_hex(4)}", []

    def make(link: type[RedisLink] = RedisLink, patience_s: float = 30.0) -> RedisTable:
        counters = Counters()
        links.append(link(RedisSettings(url=stack.redis_url), counters, patience_s))
        made = RedisTable(links[-1], group, "events", counters)
        made.counters = counters  # type: ignore[attr-defined]  # for the tests to look at
        return made

    yield make
    for link in links:
        await link.close()


async def count(table: RedisTable, *offsets: int, sends: bool = False) -> set[int]:
    """One batch on partition 0: each record counts the job up by one."""
    batch = await folded(table, *offsets, sends=sends)
    return await table.commit({0: batch})


async def folded(table: RedisTable, *offsets: int, sends: bool = False) -> Batch:
    batch = Batch(
        count_on("out" if sends else None),
        table.cached(0, (PARTITION, OWN)),
        table.offsets[0],
        "dead",
        mute_below=table.mute_below[0],
    )
    for offset in offsets:
        message = record(offset)
        if missing := batch.missing(message):
            await table.load({0: missing})
            batch.states.update(table.cached(0, missing))
        batch.apply(message)
    return batch


async def stored(table: RedisTable) -> bytes | None:
    await table.load({0: {b"job"}})
    return table.cached(0, {b"job"})[b"job"].get(b"count")


@pytest.mark.capability("C-4")
async def test_what_one_worker_wrote_the_next_one_finds(table: MakeTable) -> None:
    first, second = table(), table()
    await first.assign({0: EMPTY})
    assert await count(first, 0, 1, 2) == {0}
    positions = await second.assign({0: EMPTY})
    assert positions[0].next_offset == 3
    assert await stored(second) == b"3"


async def test_a_worker_that_lost_its_partition_is_fenced_and_told_nothing_more(table: MakeTable) -> None:
    zombie, owner = table(), table()
    await zombie.assign({0: EMPTY})
    late = await folded(zombie, 0, 1)
    zombie.disown([0])
    await owner.assign({0: EMPTY})
    await count(owner, 0)
    assert await zombie.commit({0: late}) == set()
    assert await stored(owner) == b"1"


async def test_a_worker_that_believes_it_owns_a_partition_crashes_when_fenced(table: MakeTable) -> None:
    one, other = table(), table()
    await one.assign({0: EMPTY})
    await other.assign({0: EMPTY})
    await count(other, 0)
    with pytest.raises(Fenced, match="another worker has written this partition"):
        await count(one, 0)


async def test_a_partition_that_was_revoked_while_its_state_was_read_is_not_ours(table: MakeTable) -> None:
    one = table()
    async with one.lock:  # a batch is still being written, which an assignment waits for
        late = asyncio.create_task(one.assign({0: EMPTY, 1: EMPTY}))
        await asyncio.sleep(0)
        one.disown([0, 1])
        again = asyncio.create_task(one.assign({1: EMPTY}))
        await asyncio.sleep(0)
    assert await late == {}
    assert set(await again) == set(one.offsets) == {1}


async def test_a_partition_that_is_assigned_twice_at_once_is_ours_from_the_first_answer_on(
    table: MakeTable,
) -> None:
    one = table()
    async with one.lock:
        first = asyncio.create_task(one.assign({0: EMPTY}))
        second = asyncio.create_task(one.assign({0: EMPTY}))
        await asyncio.sleep(0)
    assert set(await first) == set(one.offsets) == {0}
    second.cancel()
    assert set(one.offsets) == {0}


async def test_copies_are_void_once_another_worker_has_written(table: MakeTable) -> None:
    one, other = table(), table()
    await one.assign({0: EMPTY})
    await count(one, 0)
    one.disown([0])
    await other.assign({0: EMPTY})
    await count(other, 1)
    other.disown([0])
    await one.assign({0: EMPTY})
    await count(one, 2)
    assert await stored(one) == b"3"


async def test_copies_of_our_own_last_write_are_kept(table: MakeTable) -> None:
    one = table()
    await one.assign({0: EMPTY})
    await count(one, 0)
    one.disown([0])
    await one.assign({0: EMPTY})
    assert one.cached(0, {b"job"}) == {b"job": {b"count": b"1"}}


async def test_a_write_whose_answer_was_lost_counts_once(table: MakeTable) -> None:
    one, reader = table(LosesAnswers), table()
    await one.assign({0: EMPTY})
    assert await count(one, 0, 1) == {0}
    assert await count(one, 2) == {0}
    await reader.assign({0: EMPTY})
    assert await stored(reader) == b"3"


async def test_a_server_that_forgot_the_script_is_given_it_again(table: MakeTable, stack: Endpoints) -> None:
    one = table()
    await one.assign({0: EMPTY})
    await count(one, 0)
    with redis.Redis.from_url(stack.redis_url) as client:
        client.script_flush()
    assert await count(one, 1) == {0}


async def test_an_outage_is_waited_out_and_the_write_lands(table: MakeTable, servers: EmbeddedStack) -> None:
    one = table()
    await one.assign({0: EMPTY})
    await count(one, 0)
    servers.redis.kill()
    try:
        write = asyncio.ensure_future(count(one, 1))
        while not one.counters.redis_retries:  # type: ignore[attr-defined]  # set by the fixture
            await asyncio.sleep(0.01)
        assert not write.done()
    finally:
        await asyncio.to_thread(servers.redis.start)
    assert await write == {0}
    assert await stored(one) == b"2"


async def test_an_outage_that_outlasts_the_patience_is_raised(
    table: MakeTable, servers: EmbeddedStack
) -> None:
    one = table(patience_s=0.2)
    await one.assign({0: EMPTY})
    servers.redis.kill()
    try:
        with pytest.raises(redis.exceptions.ConnectionError):
            await count(one, 0)
    finally:
        await asyncio.to_thread(servers.redis.start)


async def test_state_newer_than_the_log_is_refused(table: MakeTable) -> None:
    one = table()
    await one.assign({0: EMPTY})
    await count(one, 0, 1, 2)
    with pytest.raises(AheadOfLog):
        await one.assign({0: Bounds(None, 0, 2)})


class Kafka:
    """Takes what the outbox publishes; answers when told to."""

    def __init__(self) -> None:
        self.taken: list[tuple[bytes | None, bytes]] = []
        self.answers = asyncio.Event()

    async def __call__(self, send: Send, headers: list[tuple[str, bytes]]) -> Awaitable[None]:
        self.taken.append((send.value, dict(headers)[ids.HEADER]))

        async def answer() -> None:
            await self.answers.wait()

        return asyncio.ensure_future(answer())


async def until(fact: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not fact():
            await asyncio.sleep(0.01)


@pytest.mark.capability("X-41")
async def test_the_commit_waits_for_what_is_not_yet_published(table: MakeTable) -> None:
    one, kafka = table(), Kafka()
    await one.assign({0: EMPTY})
    publisher = asyncio.ensure_future(one.outbox.run(kafka, lambda: False))
    await count(one, 0)
    assert one.committable(0) == 1
    await count(one, 1, 2, sends=True)
    await until(lambda: len(kafka.taken) == 2)
    assert one.committable(0) == 1
    kafka.answers.set()
    await until(lambda: one.committable(0) == 3)
    publisher.cancel()


async def test_the_next_worker_publishes_first_what_is_left(table: MakeTable) -> None:
    dead, heir, kafka = table(), table(), Kafka()
    await dead.assign({0: EMPTY})
    await count(dead, 0, 1, sends=True)
    await heir.assign({0: EMPTY})
    await count(heir, 2, sends=True)
    kafka.answers.set()
    publisher = asyncio.ensure_future(heir.outbox.run(kafka, lambda: False))
    await asyncio.wait_for(heir.outbox.recovered(), 10)
    await until(lambda: len(kafka.taken) == 3)
    assert kafka.taken == [
        (b"1", b"events/0/1-0"),
        (b"2", b"events/0/2-0"),
        (b"3", b"events/0/3-0"),
    ]
    await until(lambda: heir.committable(0) == 3)
    publisher.cancel()


async def test_what_the_group_committed_is_not_published_again(table: MakeTable) -> None:
    """An outbox that comes back with a rolled-back Redis was published before, up to the commit."""
    dead, heir, kafka = table(), table(), Kafka()
    await dead.assign({0: EMPTY})
    await count(dead, 0, 1, 2, sends=True)
    await heir.assign({0: Bounds(2, 0, 100)})
    kafka.answers.set()
    publisher = asyncio.ensure_future(heir.outbox.run(kafka, lambda: False))
    await until(lambda: heir.committable(0) == 3)
    assert kafka.taken == [(b"3", b"events/0/3-0")]
    publisher.cancel()


async def test_a_send_that_fails_is_told_and_stays_in_the_outbox(table: MakeTable) -> None:
    dead, heir = table(), table()

    async def refuse(_: Send, __: list[tuple[str, bytes]]) -> Awaitable[None]:
        raise ConnectionError("Kafka refused")

    await dead.assign({0: EMPTY})
    await count(dead, 0, sends=True)
    with pytest.raises(ConnectionError, match="Kafka refused"):
        await dead.outbox.run(refuse, lambda: False)
    assert dead.committable(0) == 0
    await heir.assign({0: EMPTY})
    assert heir.outbox.first_unpublished(0) == 0
