"""Checks whether a server is ready, by a few bytes of its protocol with the password."""

from __future__ import annotations

import socket
import struct

from midwatch.agents.local.embedded.process.ports import LOOPBACK

_PATIENCE = 2.0
_SASL_HANDSHAKE, _SASL_AUTHENTICATE, _METADATA = 17, 36, 3
_MOST = 1 << 24


def kafka_ready(port: int, username: str, password: str) -> bool:
    """Whether the broker accepts the password and counts itself as alive, so that topics can be made.

    A broker answers before its controller has accepted it. After a crash that takes the rest of the old
    broker's session. Only the list of live brokers shows that the controller has accepted it.
    """
    try:
        with socket.create_connection((LOOPBACK, port), _PATIENCE) as connection:
            handshake = _ask(connection, _SASL_HANDSHAKE, 1, _string("PLAIN"))
            if struct.unpack_from(">h", handshake)[0]:
                return False
            token = f"\0{username}\0{password}".encode()
            entry = _ask(connection, _SASL_AUTHENTICATE, 0, struct.pack(">i", len(token)) + token)
            if struct.unpack_from(">h", entry)[0]:
                return False
            # An empty array of topics, and no automatic creation.
            metadata = _ask(connection, _METADATA, 4, struct.pack(">i?", 0, False))
            return bool(struct.unpack_from(">ii", metadata)[1] > 0)
    except (OSError, struct.error):
        return False


def redis_ready(port: int, password: str) -> bool:
    """Whether Redis accepts the password and has read its data. Until then it answers LOADING."""
    try:
        with socket.create_connection((LOOPBACK, port), _PATIENCE) as connection:
            connection.sendall(f"AUTH {password}\r\nPING\r\n".encode())
            answer = b""
            while answer.count(b"\r\n") < 2 and (more := connection.recv(4096)):
                answer += more
            return answer == b"+OK\r\n+PONG\r\n"
    except OSError:
        return False


def _ask(connection: socket.socket, key: int, version: int, body: bytes) -> bytes:
    """Sends one Kafka request with a version 1 header. Returns the answer without its header."""
    request = struct.pack(">hhi", key, version, 1) + _string("midwatch-probe") + body
    connection.sendall(struct.pack(">i", len(request)) + request)
    (size,) = struct.unpack(">i", _exactly(connection, 4))
    if not 4 <= size <= _MOST:
        raise ConnectionError("not Kafka's protocol")
    return _exactly(connection, size)[4:]


def _exactly(connection: socket.socket, size: int) -> bytes:
    got = b""
    while len(got) < size:
        more = connection.recv(size - len(got))
        if not more:
            raise ConnectionError("closed")
        got += more
    return got


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()
