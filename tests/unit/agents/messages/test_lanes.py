"""A channel that fails or hangs: what is told meanwhile, where else, and how often."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest

from midwatch.agents.messages.channels.base import Channel
from midwatch.agents.messages.channels.webhook import WebhookChannel
from midwatch.agents.messages.delivery.lanes import Lanes
from midwatch.agents.messages.notice import Notice
from midwatch.agents.messages.retry import Patience
from sinks import FAILS, GONE, HANGS, HttpSink, busy, http_sink


@dataclass
class Delivered:
    """What was reported as delivered."""

    ids: list[str] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def of(self, notice: Notice) -> Callable[[], Awaitable[None]]:
        async def delivered() -> None:
            self.ids.append(notice.id)
            self.changed.set()

        return delivered

    async def wait(self, count: int) -> None:
        async with asyncio.timeout(20):
            while len(self.ids) < count:
                self.changed.clear()
                await self.changed.wait()


@asynccontextmanager
async def running(lanes: Lanes) -> AsyncIterator[Delivered]:
    async with asyncio.TaskGroup() as tasks:
        inner = tasks.create_task(_forever(lanes))
        await asyncio.sleep(0)
        yield Delivered()
        inner.cancel()


async def _forever(lanes: Lanes) -> None:
    async with asyncio.TaskGroup() as tasks:
        lanes.start(tasks)
        await asyncio.Event().wait()


def _lanes(sinks: Mapping[str, HttpSink], *, elsewhere_s: float = 60.0, answer_s: float = 0.4) -> Lanes:
    channels: dict[str, Channel] = {name: WebhookChannel(sink.url) for name, sink in sinks.items()}
    return Lanes(channels, answer_s=answer_s, patience=Patience(elsewhere_s, 3600.0, 0.05))


def _put(lanes: Lanes, name: str, notice: Notice, done: Delivered, *, wanted: bool = True) -> None:
    lanes.put(name, notice, wanted=lambda: wanted, delivered=done.of(notice))


async def test_tries_are_counted_and_a_channel_that_fails_is_known(notice: Notice) -> None:
    with http_sink(usual=FAILS) as failing, http_sink() as well:
        lanes = _lanes({"failing": failing, "well": well}, elsewhere_s=0.0)
        tries: list[tuple[str, str]] = []
        lanes.observer = lambda channel, outcome: tries.append((channel, outcome))
        assert lanes.failing == {"failing": False, "well": False}
        async with running(lanes) as done:
            _put(lanes, "failing", notice, done)
            await done.wait(1)
        assert set(tries[:-1]) == {("failing", "refused")}
        assert tries[-1] == ("well", "done")
        assert lanes.failing == {"failing": True, "well": False}


async def test_a_channel_that_hangs_holds_up_no_other(notice: Notice) -> None:
    with http_sink(usual=HANGS) as hung, http_sink() as well:
        lanes = _lanes({"hung": hung, "well": well}, answer_s=30.0)
        async with running(lanes) as done:
            _put(lanes, "hung", notice, done)
            for number in range(5):
                _put(lanes, "well", replace(notice, number=number), done)
            await done.wait(5)
        assert [r.json["id"] for r in well.requests] == done.ids, "in order"


async def test_what_fails_is_sent_again_with_the_same_id_until_it_is_taken(notice: Notice) -> None:
    with http_sink(FAILS, HANGS) as sink:
        lanes = _lanes({"hook": sink})
        async with running(lanes) as done:
            _put(lanes, "hook", notice, done)
            await done.wait(1)
        assert [r.json["id"] for r in sink.requests] == [notice.id] * 3
        assert len(sink.taken()) == 1


async def test_a_channel_that_asks_for_patience_is_left_alone_so_long(notice: Notice) -> None:
    with http_sink(busy(2)) as sink:
        lanes = _lanes({"hook": sink})
        async with running(lanes) as done:
            _put(lanes, "hook", notice, done)
            await done.wait(1)
        first, second = sink.requests
        assert second.at - first.at >= 2.0


async def test_a_channel_that_fails_for_good_is_told_of_on_another(notice: Notice) -> None:
    with http_sink(usual=GONE) as gone, http_sink() as well:
        lanes = _lanes({"gone": gone, "well": well})
        async with running(lanes) as done:
            _put(lanes, "gone", notice, done)
            await done.wait(1)
        (told,) = well.taken()
        assert told.json["id"] == notice.id
        assert told.json["note"] == "the channel gone does not take messages: HTTP 404 no_team"


async def test_a_channel_that_hangs_for_long_is_told_of_on_another(notice: Notice) -> None:
    with http_sink(usual=HANGS) as hung, http_sink() as well:
        lanes = _lanes({"hung": hung, "well": well}, elsewhere_s=0.5)
        async with running(lanes) as done:
            _put(lanes, "hung", notice, done)
            _put(lanes, "hung", replace(notice, number=2), done)
            await done.wait(2)
        assert [r.json["note"] for r in well.taken()] == [
            "the channel hung does not take messages: no answer within 0.4 s"
        ] * 2


async def test_where_no_other_channel_is_it_is_tried_on(notice: Notice) -> None:
    with http_sink(GONE, GONE) as sink:
        lanes = _lanes({"hook": sink})
        async with running(lanes) as done:
            _put(lanes, "hook", notice, done)
            await done.wait(1)
        assert len(sink.requests) == 3


async def test_a_message_that_is_refused_for_good_holds_up_no_other_of_its_channel(notice: Notice) -> None:
    with http_sink(GONE, GONE) as sink:
        lanes = _lanes({"hook": sink})
        async with running(lanes) as done:
            _put(lanes, "hook", notice, done)
            _put(lanes, "hook", replace(notice, number=2), done)
            _put(lanes, "hook", replace(notice, number=3), done)
            await done.wait(3)
        assert [r.json["id"] for r in sink.requests[:3]] == [
            replace(notice, number=number).id for number in (1, 2, 3)
        ]


async def test_a_channel_that_the_settings_no_longer_name_is_told_of_on_another(notice: Notice) -> None:
    with http_sink() as well:
        lanes = _lanes({"well": well})
        async with running(lanes) as done:
            _put(lanes, "gone", notice, done)
            await done.wait(1)
        assert "the settings name no such channel" in well.taken()[0].json["note"]


async def test_what_another_worker_delivers_is_left_to_it(notice: Notice) -> None:
    with http_sink() as sink:
        lanes = _lanes({"hook": sink})
        async with running(lanes) as done:
            _put(lanes, "hook", notice, done, wanted=False)
            _put(lanes, "hook", replace(notice, number=2), done)
            await done.wait(1)
        assert len(sink.requests) == 1


@dataclass
class _Chatty:
    """A channel whose library names its address."""

    secrets: tuple[str, ...] = ("https://hooks.example/T0/secret",)

    async def send(self, notice: Notice) -> None:
        raise ValueError(f"cannot reach https://hooks.example/T0/secret for {notice.id}")


async def test_no_secret_is_in_a_reason(notice: Notice, caplog: pytest.LogCaptureFixture) -> None:
    chatty = _Chatty()
    assert isinstance(chatty, Channel)
    with http_sink() as well:
        lanes = Lanes({"chatty": chatty, "well": WebhookChannel(well.url)}, patience=Patience(0.0, 9.0))
        async with running(lanes) as done:
            _put(lanes, "chatty", notice, done)
            await done.wait(1)
    assert "ValueError: cannot reach *** for" in well.taken()[0].json["note"]
    assert "secret" not in caplog.text
