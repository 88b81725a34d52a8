"""What the collector has taken, in Redis: one hash a trace, with each span's id and end. Shell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import redis

from midwatch.streams.telemetry.trace_ids import trace_id

KEPT_S = 30 * 86_400
"""No record of an incident comes again so long after its last one."""


class Emitted:
    """The ids of what was exported, by the trace or job to which it belongs."""

    def __init__(self, client: redis.Redis, prefix: str) -> None:
        self._redis = cast(Any, client)  # the library's types mix its blocking and its asynchronous half
        self._prefix = f"{prefix}:trace"

    def of(self, places: Iterable[str]) -> dict[str, dict[int, int]]:
        """When each thing that was exported has ended (ms), by place and id."""
        named = list(dict.fromkeys(places))
        pipe = self._redis.pipeline(transaction=False)
        for place in named:
            pipe.hgetall(self._key(place))
        return {
            place: {int(name, 16): int(end) for name, end in fields.items()}
            for place, fields in zip(named, pipe.execute(), strict=True)
        }

    def add(self, ends: Mapping[str, Mapping[int, int]]) -> None:
        """Note what the collector has taken."""
        pipe = self._redis.pipeline(transaction=True)
        for place, by_id in ends.items():
            if by_id:
                pipe.hset(self._key(place), mapping={f"{each:016x}": end for each, end in by_id.items()})
                pipe.expire(self._key(place), KEPT_S)
        pipe.execute()

    def _key(self, place: str) -> str:
        return f"{self._prefix}:{trace_id(place):032x}"
