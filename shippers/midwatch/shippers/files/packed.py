"""Reads rotated logs that were packed before the shipper had read them: `train.log.1.gz`.

A shipper that runs reads a rotated file by its descriptor, packed or not. Only one that was away needs this.
It unpacks into a file without a name, and the unread lines are read from there.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import tempfile
from collections.abc import Callable, Mapping
from typing import IO, Any

import zstandard

from midwatch.shippers.files.siblings import Sibling
from midwatch.shippers.messages import Report

MOST_BYTES = 1024**3
"""Unpacked bytes. A file that holds more is left alone: they would fill the disk for temporary files."""

_PIECE = 1024 * 1024
_OPENERS: Mapping[str, Callable[[IO[bytes]], Any]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
    ".zst": lambda file: zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True),
}
ENDINGS = tuple(_OPENERS)


def unpacked(packed: Sibling, report: Report) -> int | None:
    """A descriptor of the content, with the time of the packed file; None if it cannot be unpacked.

    The file has no name, so it is gone once the descriptor is closed.
    """
    opener = _OPENERS[os.path.splitext(packed.path)[1]]
    try:
        with open(packed.path, "rb") as file, opener(file) as content, tempfile.TemporaryFile() as target:
            size = 0
            while piece := content.read(_PIECE):
                size += len(piece)
                if size > MOST_BYTES:
                    report(f"{packed.path} holds more than {MOST_BYTES} bytes and is not unpacked")
                    return None
                target.write(piece)
            target.flush()
            os.utime(target.fileno(), ns=(packed.modified_ns, packed.modified_ns))
            return os.dup(target.fileno())
    except (OSError, EOFError, lzma.LZMAError, zstandard.ZstdError) as error:
        report(f"{packed.path} cannot be unpacked: {error}")
        return None
