"""How long an outage of Redis is waited out: by tries, not by the clock of a process that stood still."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from midwatch.streams.settings.schema import RedisSettings
from midwatch.streams.worker.counters import Counters
from midwatch.streams.worker.tables import redis_link
from midwatch.streams.worker.tables.redis_link import RedisLink


class Clock:
    """Jumps ahead as often as it is told to, during a call."""

    def __init__(self, *jumps: float) -> None:
        self.now = 0.0
        self.jumps = list(jumps)
        self.calls = 0

    async def call(self) -> str:
        self.calls += 1
        if not self.jumps:
            return "answer"
        self.now += self.jumps.pop(0)
        raise TimeoutError


@pytest.fixture
def link(monkeypatch: pytest.MonkeyPatch) -> RedisLink:
    async def at_once(_: float) -> None:
        return None

    monkeypatch.setattr("asyncio.sleep", at_once)
    return RedisLink(RedisSettings(url="redis://127.0.0.1:1/0"), Counters(), patience_s=30.0)


async def test_a_process_that_stood_still_for_minutes_asks_again(
    link: RedisLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(600.0, 600.0)
    monkeypatch.setattr(redis_link, "time", SimpleNamespace(monotonic=lambda: clock.now))
    assert await link.patiently(clock.call) == "answer"
    assert clock.calls == 3


async def test_a_redis_that_never_answers_is_given_up(
    link: RedisLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(*[5.0] * 20)
    monkeypatch.setattr(redis_link, "time", SimpleNamespace(monotonic=lambda: clock.now))
    with pytest.raises(TimeoutError):
        await link.patiently(clock.call)
    assert 5 <= clock.calls <= 7
