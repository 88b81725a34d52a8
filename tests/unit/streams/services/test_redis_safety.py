"""A Redis that could lose state or claims is known by what it says of itself, whatever its version."""

from __future__ import annotations

from typing import Any

import pytest
from redis.exceptions import NoPermissionError, ResponseError

from midwatch.streams.services.redis_safety import Unmet, unmet_demands

SAFE = {"maxmemory-policy": "noeviction", "appendonly": "yes", "appendfsync": "always"}


class Server:
    """Answers `CONFIG GET` as Redis 6 does, which takes one name."""

    def __init__(self, settings: dict[str, str], refusal: ResponseError | None = None) -> None:
        self.settings = settings
        self.refusal = refusal

    def config_get(self, name: str, *more: str) -> dict[str, str]:
        if self.refusal is not None:
            raise self.refusal
        if more:
            raise ResponseError("Unknown subcommand or wrong number of arguments for 'get'")
        return {name: self.settings[name]} if name in self.settings else {}


def unmet(server: Any, *, to_act: bool = True) -> tuple[Unmet, ...]:
    return unmet_demands(server, to_act=to_act)


def test_a_safe_redis_lacks_nothing() -> None:
    assert unmet(Server(SAFE)) == unmet(Server(SAFE), to_act=False) == ()


@pytest.mark.parametrize(
    ("name", "found", "for_acting_only"),
    [
        ("maxmemory-policy", "allkeys-lru", False),
        ("appendonly", "no", True),
        ("appendfsync", "everysec", True),
    ],
)
def test_what_is_wrong_is_named_with_what_it_is(name: str, found: str, for_acting_only: bool) -> None:
    server = Server(SAFE | {name: found})
    assert unmet(server) == (Unmet(name, SAFE[name], found),)
    assert (unmet(server, to_act=False) == ()) == for_acting_only


@pytest.mark.parametrize(
    "refusal", [ResponseError("unknown command 'CONFIG'"), NoPermissionError("no permissions"), None]
)
def test_what_is_not_told_is_not_met(refusal: ResponseError | None) -> None:
    assert unmet(Server({}, refusal)) == tuple(Unmet(name, wanted, "") for name, wanted in SAFE.items())
