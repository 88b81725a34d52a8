"""Opens a log at rest: plain, or compressed by gzip, bzip2 or zstd. The first bytes decide, not the name.

It decodes in small pieces, so a file of any size needs little memory. Of a damaged archive it gives the bytes
in front of the damage, and then says what is wrong.
"""

from __future__ import annotations

import bz2
import io
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from midwatch.streams.errors import ConfigurationError

Advance = Callable[[int], None]
"""Takes the number of bytes that were read from the disk since the last call."""

_PIECE = 64 * 1024
_ZSTD_PIECE = 2 * 1024  # zstd takes no limit for its output, and 2 kB of it can hold 64 MB
_MOST_OUT = 256 * 1024
_MAGIC = {b"\x1f\x8b\x08": "gzip", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd"}


def nothing(_bytes: int) -> None:
    """The `Advance` of a caller that shows no progress."""


class LogReader:
    """The bytes of one log from its beginning. Close it after use.

    `damage`: what is wrong with the archive, once a read has met it; "" for a whole one. No bytes follow it.
    """

    def __init__(self, source: Path | bytes, advance: Advance = nothing, stop: int | None = None) -> None:
        """Open a file, or read bytes in memory. `stop`: the bytes after which it ends. Raises OSError."""
        self._left = stop
        self._file: BinaryIO = (
            io.BytesIO(source) if isinstance(source, bytes) else source.open("rb", buffering=0)
        )
        self._advance = advance
        self.damage = ""
        try:
            head = self._raw(_PIECE)
            kind = next((name for magic, name in _MAGIC.items() if head.startswith(magic)), "")
            self._kind = kind
            self._pieces = self._unpacked(kind, head) if kind else self._plain(head)
        except BaseException:
            self._file.close()
            raise
        self._rest = b""

    @property
    def compressed(self) -> bool:
        """Whether the log is an archive."""
        return bool(self._kind)

    def read(self, size: int) -> bytes:
        """The next bytes, `size` of them unless the log ends before. Raises OSError."""
        if self._left is not None:
            size = min(size, self._left)
            self._left -= size
        parts, missing = [self._rest], size - len(self._rest)
        while missing > 0:
            piece = next(self._pieces, b"")
            if not piece:
                break
            parts.append(piece)
            missing -= len(piece)
        whole = b"".join(parts)
        self._rest = whole[size:]
        return whole[:size] if self._rest else whole

    def skip_to_end(self, size: int) -> None:
        """Go on at the last `size` bytes of a plain log."""
        length = self._file.seek(0, io.SEEK_END)
        self._file.seek(max(length - size, 0))
        self._rest, self._pieces = b"", self._plain(self._raw(_PIECE))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> LogReader:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _raw(self, size: int) -> bytes:
        piece = self._file.read(size) or b""
        self._advance(len(piece))
        return piece

    def _plain(self, head: bytes) -> Iterator[bytes]:
        while head:
            yield head
            head = self._raw(_MOST_OUT)

    def _unpacked(self, kind: str, head: bytes) -> Iterator[bytes]:
        try:
            yield from _decoded(kind, self._input(kind, head))
        except EOFError:
            self.damage = f"the {kind} archive is cut off"
        except Exception as error:
            if not _is_damage(error):
                raise
            self.damage = f"the {kind} archive is damaged"

    def _input(self, kind: str, head: bytes) -> Iterator[bytes]:
        size = _ZSTD_PIECE if kind == "zstd" else _PIECE
        while head:
            for start in range(0, len(head), size):
                yield head[start : start + size]
            head = self._raw(_PIECE)


class _Decoder(Protocol):
    """What the decoders of zlib, bz2 and zstandard have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...


Step = Callable[[Any, bytes], tuple[bytes, bytes, bool]]
"""Decodes bytes: gives the output, the input that is left, and whether more output waits for room."""


def _gzip(decoder: Any, data: bytes) -> tuple[bytes, bytes, bool]:
    out = decoder.decompress(data, _MOST_OUT)
    return out, decoder.unconsumed_tail, len(out) == _MOST_OUT


def _bzip2(decoder: Any, data: bytes) -> tuple[bytes, bytes, bool]:
    out = decoder.decompress(data, _MOST_OUT)
    return out, b"", not decoder.needs_input and not decoder.eof


def _zstd(decoder: Any, data: bytes) -> tuple[bytes, bytes, bool]:
    return decoder.decompress(data), b"", False


def _zstd_decoder() -> _Decoder:
    try:
        import zstandard
    except ImportError as error:
        raise ConfigurationError(
            "a zstd archive needs the package zstandard",
            remedy="pip install zstandard, or unpack the log with `zstd -d`",
        ) from error
    return zstandard.ZstdDecompressor().decompressobj()


_DECODERS: dict[str, tuple[Callable[[], _Decoder], Step]] = {
    "gzip": (lambda: zlib.decompressobj(wbits=31), _gzip),
    "bzip2": (bz2.BZ2Decompressor, _bzip2),
    "zstd": (_zstd_decoder, _zstd),
}


def _decoded(kind: str, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The contents of all members of an archive. Raises EOFError if the last one is not whole."""
    start, step = _DECODERS[kind]
    decoder: _Decoder | None = None
    for piece in pieces:
        data, more = piece, False
        while data or more:
            if decoder is None:
                decoder = start()
            out, data, more = step(decoder, data)
            if out:
                yield out
            if decoder.eof:
                # zlib pads a member of a tape with NULs.
                data, more, decoder = decoder.unused_data.lstrip(b"\0"), False, None
    if decoder is not None:
        raise EOFError


def _is_damage(error: Exception) -> bool:
    """Whether the decoder refused the bytes. An OSError with a number is the disk's."""
    if isinstance(error, OSError):
        return error.errno is None
    return isinstance(error, zlib.error) or type(error).__name__ == "ZstdError"
