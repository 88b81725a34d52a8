"""Finds the files that rotation made of a path: `train.log.1`, `train.log-20261120`, `train.log.2.gz`."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from dataclasses import dataclass

COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".lz4", ".zip")

Identity = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Sibling:
    """A regular file, as it was at the look."""

    path: str
    identity: Identity
    size: int
    modified_ns: int


def regular(path: str) -> Sibling | None:
    """The regular file that the path names now; None if there is none or it cannot be reached."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return Sibling(path, (status.st_dev, status.st_ino), status.st_size, status.st_mtime_ns)


def unreachable(path: str) -> str:
    """Why the path's file cannot be followed; "" if it can, or if it does not exist yet."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        return error.strerror or str(error)
    return "" if stat.S_ISREG(status.st_mode) else "it is not a regular file"


def siblings(path: str) -> list[Sibling]:
    """All files beside the path that rotation may have made of it, oldest first. Packed ones are left out."""
    return [found for found in _rotated(path) if not found.path.endswith(COMPRESSED)]


def packed_siblings(path: str, endings: tuple[str, ...], since_ns: int) -> list[Sibling]:
    """The packed files that rotation made of the path, last written at `since_ns` or later, oldest first.

    The programs that pack a file give the copy its time.
    """
    return [s for s in _rotated(path) if s.path.endswith(endings) and s.modified_ns >= since_ns]


def _rotated(path: str) -> list[Sibling]:
    folder, name = os.path.split(path)
    try:
        names = [
            n
            for n in os.listdir(folder or ".")
            if n.startswith(name) and n[len(name) : len(name) + 1] in "._-~"
        ]
    except OSError:
        return []
    found = (regular(os.path.join(folder, n)) for n in names if n != name)
    return sorted((s for s in found if s), key=lambda s: (s.modified_ns, s.path))


def newer(path: str, since_ns: int, known: Collection[Identity]) -> list[Sibling]:
    """The siblings outside of `known` that were last written at `since_ns` or later, oldest first.

    Such files appeared and were rotated away between two looks.
    """
    return [s for s in siblings(path) if s.modified_ns >= since_ns and s.identity not in known and s.size]


def same_file(path: str, identity: Identity) -> Sibling | None:
    """The file with this identity, under the path or beside it; None if it is in neither place."""
    here = regular(path)
    if here and here.identity == identity:
        return here
    return next((s for s in siblings(path) if s.identity == identity), None)
