"""A record as Faust delivers it, turned into a plain value."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from faust.types import EventT, StreamT

from midwatch.streams.worker.fold import Message

_LOG_APPEND_TIME = 1


@dataclass(frozen=True, slots=True)
class RawRecord:
    """The bytes and coordinates of one record; `append_time` says whether the broker set its time."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    append_time: bool
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]

    def message(self, now_ms: int) -> Message:
        """The record as the pure core reads it; `now_ms` is the time of its partition."""
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
    """The record of a Faust message whose key and value are undecoded bytes."""
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


_LOOK_S = 1.0
"""How often an idle stream is looked at, should the sign of a record ever be missed."""


def batches(stream: StreamT[Any], most: int, within_s: float) -> AsyncIterator[Sequence[EventT[Any]]]:
    """Batches of up to `most` unacknowledged events, at most `within_s` seconds apart while there are any.

    Faust's `take` loses the events that follow an exception. `noack_take` acknowledges none, but it looks for
    events every `within_s`, also where none come. So the first event of a batch wakes it here, and an idle
    worker sleeps. A batch that begins after a pause gathers for half of `within_s`.
    """
    faust_stream, arrived = cast(Any, stream), asyncio.Event()
    wait = faust_stream.wait_for_stopped

    def note(event: object) -> object:
        arrived.set()
        return event

    async def wait_for_batch(full: asyncio.Event, *, timeout: float) -> None:
        if not arrived.is_set():
            timeout /= 2
            await wait(arrived, timeout=_LOOK_S)
        arrived.clear()
        await wait(full, timeout=timeout)

    faust_stream.add_processor(note)  # it runs before the one that fills the batch
    faust_stream.wait_for_stopped = wait_for_batch
    return cast("AsyncIterator[Sequence[EventT[Any]]]", faust_stream.noack_take(most, within=within_s))
