"""Tells a log from a file that is no text: a checkpoint, a program, an archive of another kind. Pure."""

from __future__ import annotations

import re

SAMPLE = 64 * 1024
"""Bytes at the beginning of a file that decide."""

_HOLE = re.compile(rb"\0{512,}")  # a crash of the machine may leave a hole of NULs in a log
_CONTROLS = bytes(byte for byte in (*range(32), 127) if byte not in b"\t\n\v\f\r\b\a\x1b")
_MOST = 0.02  # the share of control characters that text may have; random bytes have 0.1
_FORMATS = (
    (b"\xfd7zXZ\0", "an xz archive", "unpack it with `xz -d`"),
    (b"PK\x03\x04", "a zip archive", "unpack it and give its files"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it and give its files"),
    (b"\x04\x22\x4d\x18", "an lz4 archive", "unpack it with `lz4 -d`"),
    (b"\xff\xfe", "text in UTF-16", "turn it into UTF-8 with `iconv -f UTF-16 -t UTF-8`"),
    (b"\xfe\xff", "text in UTF-16", "turn it into UTF-8 with `iconv -f UTF-16 -t UTF-8`"),
    (b"\x7fELF", "a program", "give a log"),
)


def not_text(sample: bytes) -> tuple[str, str] | None:
    """What the file is instead of a log, and the remedy; None if the sample may be a log's."""
    for magic, kind, remedy in _FORMATS:
        if sample.startswith(magic):
            return kind, remedy
    if sample[257:262] == b"ustar":
        return "a tar archive", "unpack it and give its files"
    text = _HOLE.sub(b"", sample)
    controls = len(text) - len(text.translate(None, _CONTROLS))
    if controls > _MOST * len(text):
        return "binary data", "give a text file"
    return None
