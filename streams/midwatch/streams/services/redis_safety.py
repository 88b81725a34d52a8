"""The configuration under which Redis loses no data, and whether a Redis has it. Shell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from redis import Redis

_STATE = {"maxmemory-policy": "noeviction"}
_CLAIMS = {"appendonly": "yes", "appendfsync": "always"}


@dataclass(frozen=True, slots=True)
class Unmet:
    """A Redis setting with a wrong value. `found` is "" if Redis hides the setting."""

    name: str
    wanted: str
    found: str


def unmet_demands(client: Redis, *, to_act: bool) -> tuple[Unmet, ...]:
    """The settings that let Redis lose data. Raises redis' errors if Redis does not answer.

    Redis must not evict state. With `to_act` the executor's claims may not roll back either, so each write
    must be on disk before Redis answers. A hosted Redis may hide its settings. The caller decides whether to
    trust it then.
    """
    demands = _STATE | (_CLAIMS if to_act else {})
    found = [Unmet(name, wanted, _setting(client, name)) for name, wanted in demands.items()]
    return tuple(demand for demand in found if demand.found != demand.wanted)


def _setting(client: Redis, name: str) -> str:
    from redis.exceptions import ResponseError

    try:
        # One by one: Redis 6 refuses a request for several.
        answer: Any = client.config_get(name)
    except ResponseError:
        return ""
    return str(answer.get(name) or "")
