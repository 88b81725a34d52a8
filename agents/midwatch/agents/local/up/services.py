"""Kafka and Redis for `up`: those that the settings name, else embedded ones, which end with `up`."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from midwatch.agents.launch import backoff
from midwatch.agents.local.up.processes import Say
from midwatch.streams.errors import ConfigurationError, MidwatchError
from midwatch.streams.services.reachable import check_kafka, check_redis
from midwatch.streams.settings.schema import Settings
from midwatch.streams.settings.secret import Secret

if TYPE_CHECKING:
    from midwatch.agents.local.embedded.stack import EmbeddedStack, Endpoints


@dataclass(frozen=True, slots=True)
class Jars:
    """Where the jars of an embedded Kafka come from. None means the cache and the default repository."""

    directory: Path | None = None
    maven_mirror: str | None = None


class Services:
    """The running services. `look` starts an embedded one again that has ended."""

    def __init__(self, settings: Settings, stack: EmbeddedStack | None) -> None:
        self.settings = settings
        self._stack = stack
        self._deaths: dict[str, list[float]] = {}
        self._not_started: dict[str, MidwatchError] = {}
        """Servers whose last start failed, and why; such a server no longer knows that it ended."""

    @property
    def kind(self) -> str:
        """A word for the output: whether they are embedded or given by the settings."""
        return "embedded" if self._stack else "given"

    def look(self, now: float, say: Say) -> None:
        """Starts an embedded Kafka or Redis again if it has ended by itself."""
        if self._stack is None:
            return
        for server in (self._stack.kafka, self._stack.redis):
            failed_start = self._not_started.get(server.name)
            error = failed_start or server.failure()
            if error is None:
                continue
            deaths = self._deaths.setdefault(server.name, [])
            if deaths and now < deaths[-1] + backoff.pause(deaths, now):
                continue
            deaths[:] = [*backoff.recent(deaths, now), now]
            if failed_start is None:
                say(f"{server.name} has ended: {error.what}; midwatch starts it again")
            try:
                server.restart()
            except MidwatchError as failed:
                if failed_start is None or failed_start.what != failed.what:
                    say(f"{server.name} does not start: {failed}; midwatch tries again")
                self._not_started[server.name] = failed
            else:
                self._not_started.pop(server.name, None)
                say(f"{server.name} answers again")


@contextlib.contextmanager
def services(settings: Settings, jars: Jars, say: Say) -> Iterator[Services]:
    """Checks the given services, or starts embedded ones and stops them at the end of the block.

    Raises:
        ConfigurationError: one of the two is named and the other is not, or Redis would lose state.
        ServiceUnreachable: a given service does not answer.
        EmbeddedStackError: an embedded service cannot be started; the error says why.
    """
    given = (bool(settings.kafka.bootstrap), bool(settings.redis.url))
    if all(given):
        check_kafka(settings)
        check_redis(settings, safe_to_act=settings.armed)
        yield Services(settings, None)
        return
    if any(given):
        named, lacking = ("kafka.bootstrap", "redis.url") if given[0] else ("redis.url", "kafka.bootstrap")
        raise ConfigurationError(
            f"{named} is set and {lacking} is not",
            where=lacking,
            remedy="name both, or neither: then `midwatch up` starts its own",
        )
    from midwatch.agents.local.embedded.stack import EmbeddedStack

    stack = EmbeddedStack(settings.state_directory, jars=jars.directory, maven_mirror=jars.maven_mirror)
    began = time.monotonic()
    endpoints = stack.start()
    try:
        say(f"Kafka and Redis started in {time.monotonic() - began:.1f} s")
        yield Services(with_endpoints(settings, endpoints), stack)
    finally:
        stack.stop()


def with_endpoints(settings: Settings, endpoints: Endpoints) -> Settings:
    """The settings with Kafka and Redis where an embedded stack answers."""
    redis = urlsplit(endpoints.redis_url)
    return replace(
        settings,
        kafka=replace(
            settings.kafka,
            bootstrap=(endpoints.kafka,),
            username=endpoints.kafka_username,
            password=Secret(endpoints.kafka_password),
        ),
        redis=replace(
            settings.redis,
            url=f"redis://{redis.hostname}:{redis.port}{redis.path}",
            password=Secret(redis.password or ""),
        ),
    )
