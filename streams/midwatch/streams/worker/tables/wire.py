"""A `Send` as bytes for the outbox: a length before each part, so that None and empty stay different."""

from __future__ import annotations

import struct

from midwatch.streams.errors import MalformedRecord
from midwatch.streams.worker.fold import Send

_NONE = 0xFFFFFFFF
_LENGTH = struct.Struct("!I")
_VERSION = b"\x01"


def _part(out: list[bytes], part: bytes | None) -> None:
    if part is None:
        out.append(_LENGTH.pack(_NONE))
    else:
        out += (_LENGTH.pack(len(part)), part)


def pack(send: Send) -> bytes:
    out: list[bytes] = [_VERSION]
    _part(out, send.topic.encode())
    _part(out, None if send.partition is None else b"%d" % send.partition)
    _part(out, send.key)
    _part(out, send.value)
    for name, value in send.headers:
        _part(out, name.encode())
        _part(out, value)
    return b"".join(out)


def unpack(blob: bytes) -> Send:
    """Raises MalformedRecord for bytes that `pack` did not make: another version, a cut entry."""
    parts: list[bytes | None] = []
    at = 1
    try:
        if blob[:1] != _VERSION:
            raise ValueError("unknown version")
        while at < len(blob):
            (length,) = _LENGTH.unpack_from(blob, at)
            at += _LENGTH.size
            if length == _NONE:
                parts.append(None)
                continue
            if at + length > len(blob):
                raise ValueError("cut short")
            parts.append(blob[at : at + length])
            at += length
        topic, partition, key, value, *headers = parts
        if topic is None or len(headers) % 2 or None in headers:
            raise ValueError("not as many parts as a record has")
        pairs = [part for part in headers if part is not None]
        return Send(
            topic=topic.decode(),
            partition=None if partition is None else int(partition),
            key=key,
            value=value,
            headers=tuple((pairs[i].decode(), pairs[i + 1]) for i in range(0, len(pairs), 2)),
        )
    except (ValueError, struct.error) as error:
        raise MalformedRecord(
            f"cannot read an entry of the outbox: {error}",
            remedy="A newer midwatch may have written it: run that version until the outbox is empty.",
        ) from error
