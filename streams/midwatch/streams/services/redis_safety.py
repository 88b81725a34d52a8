"""What Redis must be told so that it keeps what it is given, and whether it is. Shell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from redis import Redis

_STATE = {"maxmemory-policy": "noeviction"}
_CLAIMS = {"appendonly": "yes", "appendfsync": "always"}


@dataclass(frozen=True, slots=True)
class Unmet:
    """A setting that is not as it must be. `found` is "" where Redis does not tell it."""

    name: str
    wanted: str
    found: str


def unmet_demands(client: Redis, *, to_act: bool) -> tuple[Unmet, ...]:
    """Which settings would let Redis lose what it is given. Raises redis' errors where it does not answer.

    State must not be evicted. `to_act`: the executor's claims may not roll back either, so each write must
    be on disk before it is answered. A hosted Redis may hide its settings; whether to trust it then is the
    caller's to say.
    """
    demands = _STATE | (_CLAIMS if to_act else {})
    told = [Unmet(name, wanted, _setting(client, name)) for name, wanted in demands.items()]
    return tuple(each for each in told if each.found != each.wanted)


def _setting(client: Redis, name: str) -> str:
    from redis.exceptions import ResponseError

    try:
        # One by one: Redis 6 refuses the question for several.
        answer: Any = client.config_get(name)
    except ResponseError:
        return ""
    return str(answer.get(name) or "")
