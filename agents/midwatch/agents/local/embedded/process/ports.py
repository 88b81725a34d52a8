"""Ports on loopback."""

from __future__ import annotations

import random
import socket
from collections.abc import Collection

LOOPBACK = "127.0.0.1"

# Systems take the ports of outgoing connections from above this range (Linux from 32768, macOS from 49152).
# A client that retries a stopped server there could be given the server's port, and connect to itself.
_LOWEST, _HIGHEST = 20000, 32767


def is_free(port: int) -> bool:
    """Whether a server could listen on the port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def free_port(avoid: Collection[int] = ()) -> int:
    """A port on which nothing listens, and not one of `avoid`.

    Another program can take it before the server starts, so the caller must be ready to choose again.
    """
    while True:
        port = random.randint(_LOWEST, _HIGHEST)  # noqa: S311 (no secret)
        if port not in avoid and is_free(port):
            return port
