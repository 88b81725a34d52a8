"""A connection that broke under a write is a broken connection, on uvloop too."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
import uvloop
from aiokafka import AIOKafkaClient
from aiokafka.conn import AIOKafkaConnection
from aiokafka.errors import KafkaConnectionError
from aiokafka.protocol.admin import ApiVersionRequest_v0

from midwatch.streams.worker import broken_connections
from midwatch.streams.worker.broken_connections import expect_broken_connections, patient


async def _write_to_a_closed_transport() -> AIOKafkaConnection:
    async def serve(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    connection = AIOKafkaConnection(*server.sockets[0].getsockname()[:2])
    connection._closed_fut = asyncio.get_running_loop().create_future()
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
    connection._reader, connection._writer = reader, writer
    connection._read_task = asyncio.create_task(asyncio.Event().wait())
    writer.transport.abort()
    while "closed=False" in repr(writer.transport):
        await asyncio.sleep(0)
    with pytest.raises(KafkaConnectionError, match="handler is closed"):
        await connection.send(SimpleNamespace(prepare=lambda _: ApiVersionRequest_v0()))
    server.close()
    return connection


def test_a_write_to_a_transport_that_was_just_closed_is_a_broken_connection() -> None:
    expect_broken_connections()
    expect_broken_connections()
    connection = uvloop.run(_write_to_a_closed_transport())
    assert not connection.connected()


async def test_no_update_of_the_metadata_ends_the_task_that_makes_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(broken_connections, "METADATA_PAUSE_S", 0.0)
    answers: list[Any] = [RuntimeError("the handler is closed"), False, True]

    async def update(*_: Any) -> bool:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return bool(answer)

    client = SimpleNamespace(_metadata_update=update)
    patient(cast(AIOKafkaClient, client))
    assert [await client._metadata_update() for _ in range(3)] == [False, False, True]
