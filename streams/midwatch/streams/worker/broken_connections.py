"""Repairs for aiokafka 0.14 on uvloop, which does not survive a write to a connection that has just broken.

asyncio's transport ignores such a write. uvloop's raises RuntimeError ("the handler is closed"), which
aiokafka does not expect. Its metadata task then ends without a log line. Every caller that waits for new
metadata waits for ever, the search for the group's coordinator first of all. The worker lives on outside its
group. The fault needs a broker that dies just before a request is written.
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
    """Make the client pause after a failed metadata update, and keep its metadata task alive.

    While no leader is known (a cleanly stopped broker), aiokafka 0.14 asks for metadata without any pause.
    Each worker would spend most of a core and write thousands of log lines a second.
    """
    update = client._metadata_update

    async def paced(*args: Any) -> bool:
        try:
            done = bool(await update(*args))
        except Exception:
            _log.exception("the metadata update of aiokafka failed; trying again")
            done = False
        if not done:
            await asyncio.sleep(METADATA_PAUSE_S)
        return done

    client._metadata_update = paced


def _breaking(send: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, but a closed transport raises KafkaConnectionError, which aiokafka expects."""

    @wraps(send)
    def sends(self: AIOKafkaConnection, *args: Any, **options: Any) -> Any:
        try:
            return send(self, *args, **options)
        except RuntimeError as error:
            self.close(reason=CloseReason.CONNECTION_BROKEN)
            raise KafkaConnectionError(f"the connection is broken: {error}") from error

    return sends


def expect_broken_connections() -> None:
    """Call once per process, before the first connection; further calls do no harm."""
    for name in ("send", "_send_sasl_token"):
        method = getattr(AIOKafkaConnection, name)
        if not hasattr(method, "__wrapped__"):
            setattr(AIOKafkaConnection, name, _breaking(method))
