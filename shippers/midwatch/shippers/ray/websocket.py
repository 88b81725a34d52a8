"""The little of the WebSocket protocol that reads Ray's log tail: text from the server until it closes."""

from __future__ import annotations

import base64
import os
import socket
import struct
from collections.abc import Iterator

from midwatch.streams.services.ray_jobs import RayHead, base_path, connect, headers

_SWITCHING = 101
_TEXT, _CLOSE, _PING, _PONG, _CONTINUED = 1, 8, 9, 10, 0
_NORMAL, _GOING_AWAY = 1000, 1001
_MASK = 0x80


class TailClosed(OSError):
    """The server ended the tail before the log's end, or did not open it."""


class LogTail:
    """One open tail. `texts` returns what has come, and waits at most the timeout for more."""

    def __init__(self, head: RayHead, path: str, timeout: float) -> None:
        """Raises OSError if the head is away or refuses."""
        connection = connect(head, timeout)
        connection.connect()
        key = base64.b64encode(os.urandom(16)).decode()
        upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
        connection.request(
            "GET", base_path(head) + path, headers=headers(head) | upgrade | {"Sec-WebSocket-Key": key}
        )
        self._socket: socket.socket = connection.sock
        self._buffer = bytearray()
        self.complete = False
        """Whether the server closed the tail in the usual way: it has sent the whole log."""
        self._shake(timeout)

    def texts(self, timeout: float) -> Iterator[bytes]:
        """The texts that came. Raises TailClosed, or another OSError, when the connection broke."""
        self._socket.settimeout(timeout)
        try:
            received = self._socket.recv(1 << 18)
        except TimeoutError:
            return
        if not received:
            raise TailClosed("the head closed the connection")
        self._buffer += received
        while (frame := self._frame()) is not None:
            kind, content = frame
            if kind in (_TEXT, _CONTINUED):
                yield content
            elif kind == _PING:
                self._send(_PONG, content)
            elif kind == _CLOSE:
                code = struct.unpack("!H", content[:2])[0] if len(content) > 1 else _NORMAL
                if code not in (_NORMAL, _GOING_AWAY):
                    raise TailClosed(f"the head closed the tail with code {code}: {content[2:200]!r}")
                self.complete = code == _NORMAL
                return

    def close(self) -> None:
        self._socket.close()

    def _shake(self, timeout: float) -> None:
        self._socket.settimeout(timeout)
        while b"\r\n\r\n" not in self._buffer:
            received = self._socket.recv(4096)
            if not received:
                raise TailClosed("the head closed the connection")
            self._buffer += received
        first, _, rest = bytes(self._buffer).partition(b"\r\n\r\n")
        status = first.split(b" ", 2)[1:2]
        if status != [str(_SWITCHING).encode()]:
            raise TailClosed(f"the head refused the tail: {first.splitlines()[0].decode(errors='replace')}")
        self._buffer = bytearray(rest)

    def _frame(self) -> tuple[int, bytes] | None:
        """The next whole frame. A server's frames are not masked."""
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        kind, length, at = buffer[0] & 0x0F, buffer[1] & 0x7F, 2
        for marker, size, shape in ((126, 2, "!H"), (127, 8, "!Q")):
            if length == marker:
                if len(buffer) < at + size:
                    return None
                (length,) = struct.unpack(shape, buffer[at : at + size])
                at += size
                break
        if len(buffer) < at + length:
            return None
        content = bytes(buffer[at : at + length])
        del buffer[: at + length]
        return kind, content

    def _send(self, kind: int, content: bytes) -> None:
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(content[:125]))
        self._socket.sendall(bytes([_MASK | kind, _MASK | len(masked)]) + mask + masked)
