"""Identifies a file by device, inode and first bytes: an inode may be used again for another file."""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass

from midwatch.streams.records import Generation

_REACH = 1024


@dataclass(frozen=True, slots=True)
class Probe:
    """The checksum of a file's first `length` bytes."""

    checksum: int
    length: int

    def fits(self, descriptor: int) -> bool:
        """Whether the file still begins with these bytes."""
        head = os.pread(descriptor, self.length, 0)
        return len(head) == self.length and zlib.crc32(head) == self.checksum


def probe(descriptor: int, length: int = _REACH) -> Probe:
    """A probe of the first min(1 KiB, size, `length`) bytes."""
    head = os.pread(descriptor, min(length, _REACH), 0)
    return Probe(zlib.crc32(head), len(head))


def extended(known: Probe, descriptor: int, read: int) -> Probe:
    """The probe, longer if `read` bytes allow it. Probe only bytes that were read.

    Others may still change: a network file system shows NULs in their place.
    """
    return known if known.length >= min(read, _REACH) else probe(descriptor, read)


def generation(descriptor: int, truncations: int = 0) -> Generation:
    """The identity of the file's present content.

    It does not change while the file grows, because it names how many first bytes it covers.
    """
    status, seen = os.fstat(descriptor), probe(descriptor)
    return Generation(status.st_dev, status.st_ino, f"{seen.checksum:08x}.{seen.length}", truncations)
