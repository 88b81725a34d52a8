"""The connection to Redis: it waits out an outage and raises every other error at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import redis.asyncio as redis_async
from redis import exceptions
from redis.backoff import NoBackoff
from redis.retry import Retry

from midwatch.streams.settings.schema import RedisSettings
from midwatch.streams.worker.counters import Counters

T = TypeVar("T")

RETRIED = (
    exceptions.ConnectionError,  # also LOADING
    exceptions.TimeoutError,
    exceptions.OutOfMemoryError,
    exceptions.ReadOnlyError,
    OSError,
)
ANSWER_S = 5.0
"""How long one call may take. After it the call counts as unanswered, and its effect is unknown."""
PATIENCE_S = 30.0
"""How long the worker waits for Redis in an outage before it crashes."""


def is_outage(error: BaseException) -> bool:
    """Whether the trouble may pass, so that the same call may be repeated."""
    if isinstance(error, exceptions.AuthenticationError):
        return False
    if isinstance(error, RETRIED):
        return True
    return isinstance(error, exceptions.ResponseError) and str(error).startswith(("MISCONF", "BUSY"))


class RedisLink:
    """One client, and the retry around it.

    The client's built-in retry is off. Only this class repeats a write, with the nonce that distinguishes a
    lost answer from a foreign write.
    """

    def __init__(self, settings: RedisSettings, counters: Counters, patience_s: float = PATIENCE_S) -> None:
        options: dict[str, Any] = {"ssl_ca_certs": str(settings.ca_file)} if settings.ca_file else {}
        if password := settings.password.reveal():
            options["password"] = password
        self.client = redis_async.Redis.from_url(
            settings.url,
            # With a socket timeout redis-py sends by asyncio.wait_for, which in CPython 3.11 can swallow a
            # cancellation. The worker would then never stop. So the timeout is around the whole call.
            socket_timeout=None,
            socket_connect_timeout=2,
            retry=Retry(NoBackoff(), 0),
            **options,
        )
        self._counters = counters
        self._patience_s = patience_s

    async def patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        """Repeat the call until it answers; raises its last error once the patience is spent.

        A try counts for at most its time limit. A process that itself stood still (SIGSTOP, a suspended
        machine) finds its clock far ahead although Redis is well.
        """
        waited_s, pause = 0.0, 0.05
        while True:
            began = time.monotonic()
            try:
                async with asyncio.timeout(ANSWER_S):
                    return await call()
            except Exception as error:
                waited_s += min(time.monotonic() - began, ANSWER_S)
                if not is_outage(error) or waited_s > self._patience_s:
                    raise
                self._counters.redis_retries += 1
                await asyncio.sleep(pause)
                waited_s += pause
                pause = min(pause * 2, 1.0)

    async def close(self) -> None:
        await self.client.aclose()
