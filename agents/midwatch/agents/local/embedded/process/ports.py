"""Ports on loopback."""

from __future__ import annotations

import random
import socket
from collections.abc import Collection

LOOPBACK = "127.0.0.1"

# Below the ports that systems lend to outgoing connections (Linux from 32768, macOS from 49152): a client
# that tries a stopped server again and again on such a port can be lent that very port, and talk to itself.
_LOWEST, _HIGHEST = 20000, 32767


def is_free(port: int) -> bool:
    """Whether a server could listen on it now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def free_port(avoid: Collection[int] = ()) -> int:
    """A port on which nothing listens, and not one of `avoid`.

    Somebody else can still take it before it is used: whoever starts a server must be ready to ask again.
    """
    while True:
        port = random.randint(_LOWEST, _HIGHEST)  # noqa: S311 (no secret)
        if port not in avoid and is_free(port):
            return port
