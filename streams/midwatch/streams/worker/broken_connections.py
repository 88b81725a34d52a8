"""What aiokafka 0.14 does not survive on uvloop: a write to a connection that has just broken.

asyncio's transport takes such a write in silence; uvloop's raises RuntimeError ("the handler is closed"), for
which aiokafka is not prepared. Its task that keeps the metadata then ended without a word, and whoever asked
for new metadata, the search for the group's coordinator first of all, waited for ever: a worker alive, out of
its group. It takes a broker that dies while a request is about to be written.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import wraps
from typing import Any

from aiokafka import AIOKafkaClient
from aiokafka.conn import AIOKafkaConnection, CloseReason
from aiokafka.errors import KafkaConnectionError

METADATA_PAUSE_S = 0.25
_log = logging.getLogger(__name__)


def patient(client: AIOKafkaClient) -> None:
    """Pause after a failed metadata update, and let none end the task that makes them.

    While no leader is known (a cleanly stopped broker), aiokafka 0.14 asks for metadata without any pause:
    most of a core and thousands of log lines a second in each worker.
    """
    update = client._metadata_update

    async def paced(*args: Any) -> bool:
        try:
            done = bool(await update(*args))
        except Exception:
            _log.exception("aiokafka's update of the metadata failed; it is made again")
            done = False
        if not done:
            await asyncio.sleep(METADATA_PAUSE_S)
        return done

    client._metadata_update = paced


def _breaking(send: Callable[..., Any]) -> Callable[..., Any]:
    """The same, but a closed transport is a broken connection, which all of aiokafka expects."""

    @wraps(send)
    def sends(self: AIOKafkaConnection, *args: Any, **options: Any) -> Any:
        try:
            return send(self, *args, **options)
        except RuntimeError as error:
            self.close(reason=CloseReason.CONNECTION_BROKEN)
            raise KafkaConnectionError(f"the connection is broken: {error}") from error

    return sends


def expect_broken_connections() -> None:
    """Once per process, before the first connection; more do no harm."""
    for name in ("send", "_send_sasl_token"):
        own = getattr(AIOKafkaConnection, name)
        if not hasattr(own, "__wrapped__"):
            setattr(AIOKafkaConnection, name, _breaking(own))
