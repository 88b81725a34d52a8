"""A record as Faust hands it over, taken out of Faust's hands."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from faust.types import EventT, StreamT

from midwatch.streams.worker.fold import Message

_LOG_APPEND_TIME = 1


@dataclass(frozen=True, slots=True)
class RawRecord:
    """The bytes and coordinates of one record; `append_time` tells whether the broker set its time."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    append_time: bool
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]

    def message(self, now_ms: int) -> Message:
        """The record as the pure core sees it, at that time of its partition."""
        return Message(
            topic=self.topic,
            partition=self.partition,
            offset=self.offset,
            timestamp_ms=self.timestamp_ms,
            now_ms=now_ms,
            key=self.key,
            value=self.value,
            headers=self.headers,
        )


def raw(message: Any) -> RawRecord:
    """The record of a Faust message (its key and value are the undecoded bytes)."""
    headers = message.headers or ()
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return RawRecord(
        topic=message.topic,
        partition=message.partition,
        offset=message.offset,
        timestamp_ms=round((message.timestamp or 0.0) * 1000),
        append_time=message.timestamp_type == _LOG_APPEND_TIME,
        key=cast("bytes | None", message.key),
        value=cast("bytes | None", message.value),
        headers=tuple((name, value) for name, value in pairs),
    )


def batches(stream: StreamT[Any], most: int, within_s: float) -> AsyncIterator[Sequence[EventT[Any]]]:
    """Events as they come, up to `most` at a time, `within_s` apart, and none acknowledged.

    Faust's `take` loses what follows an exception; this is the variant that does not acknowledge.
    """
    return cast("AsyncIterator[Sequence[EventT[Any]]]", cast(Any, stream).noack_take(most, within=within_s))
