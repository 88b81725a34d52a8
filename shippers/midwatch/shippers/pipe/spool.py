"""Stores a stream on its way from a pipe to the shipper, in a bounded number of files.

Each file has the place of its first byte in the stream as its name: `<offset>-<line number>-<0 or 1>.raw`, 1
if it begins within a line. Where a file begins behind the end of the one before, bytes were dropped. A file
`end` marks the end of the stream; it is empty, or says how the command ended that wrote the stream.
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from midwatch.shippers.files.tail import FilePosition

FOLDER_PREFIX = "midwatch-spool-"

SEGMENT = 8 * 1024 * 1024
BOUND = 256 * 1024 * 1024
"""Most bytes on disk; beyond them the spool drops the oldest file."""
IN_MEMORY = 8 * 1024 * 1024
"""Most bytes that wait while the disk is full or slow; beyond them the oldest are dropped."""

_SUFFIX = ".raw"
_END = "end"


@dataclass(frozen=True, slots=True)
class Segment:
    """One file of the spool."""

    path: Path
    start: FilePosition


def segments(folder: Path) -> list[Segment]:
    """The files of the spool, in the order of the stream."""
    found = []
    for name in os.listdir(folder):
        if name.endswith(_SUFFIX):
            offset, number, within = name.removesuffix(_SUFFIX).split("-")
            found.append(Segment(folder / name, FilePosition(int(offset), int(number), within == "1")))
    return sorted(found, key=lambda s: s.start.offset)


def ended(folder: Path) -> bool:
    """Whether the stream has ended."""
    return (folder / _END).exists()


def end_note(folder: Path) -> bytes | None:
    """The content of the file `end`; None while the stream has not ended."""
    try:
        return (folder / _END).read_bytes()
    except FileNotFoundError:
        return None


def mark_end(folder: Path, note: bytes = b"") -> None:
    """Writes the file `end`, whole or not at all. A full disk leaves an empty one, or none."""
    draft = folder / f".{_END}"
    with contextlib.suppress(OSError):
        draft.write_bytes(note)
        draft.rename(folder / _END)
        return
    with contextlib.suppress(OSError):
        draft.unlink(missing_ok=True)
        (folder / _END).touch()


def behind(start: FilePosition, data: bytes) -> FilePosition:
    """The position after these bytes."""
    if not data:
        return start
    return FilePosition(start.offset + len(data), start.number + data.count(b"\n"), not data.endswith(b"\n"))


class Backlog:
    """Pieces of the stream that are not written yet. Their size is bounded; the oldest are dropped first."""

    def __init__(self, bound: int = IN_MEMORY) -> None:
        self._bound = bound
        self._pieces: deque[tuple[FilePosition, bytes]] = deque()
        self._end = FilePosition()
        self.size = 0
        self.dropped = 0

    def add(self, data: bytes) -> None:
        """Appends the next bytes of the stream."""
        self._pieces.append((self._end, data))
        self._end = behind(self._end, data)
        self.size += len(data)
        while self.size > self._bound:
            _, oldest = self._pieces.popleft()
            self.size -= len(oldest)
            self.dropped += len(oldest)

    def take(self) -> tuple[FilePosition, bytes] | None:
        """Removes and returns the oldest piece; None if there is none."""
        if not self._pieces:
            return None
        start, data = self._pieces.popleft()
        self.size -= len(data)
        return start, data

    def put_back(self, start: FilePosition, data: bytes) -> None:
        """Returns a piece that could not be written, to be the oldest again."""
        self._pieces.appendleft((start, data))
        self.size += len(data)


class Spool:
    """Writes the stream into the folder's files."""

    def __init__(self, folder: Path, bound: int = BOUND, segment: int = SEGMENT) -> None:
        self._folder = folder
        self._bound = bound
        self._segment = segment
        self._file: int | None = None
        self._start = self._end = FilePosition()

    def write(self, start: FilePosition, data: bytes) -> tuple[FilePosition, bytes]:
        """Appends a piece of the stream; returns the bytes that the disk did not take, and their position."""
        while data:
            if self._file is not None and (start.offset != self._end.offset or self._due()):
                self._close()
            cut = len(data)
            if self._file is not None and self._size >= self._segment:
                cut = data.find(b"\n") + 1 or cut  # a file ends with a line
            try:
                written = os.write(self._file if self._file is not None else self._open(start), data[:cut])
            except OSError:
                self._make_room()
                break
            self._end = start = behind(start, data[:written])
            data = data[written:]
        return start, data

    def finish(self, note: bytes = b"") -> None:
        """Marks the end of the stream."""
        self._close()
        mark_end(self._folder, note)

    @property
    def _size(self) -> int:
        return self._end.offset - self._start.offset

    def _due(self) -> bool:
        """Whether a new file is due: at a line's end, or within a line at twice a file's size."""
        return self._size >= self._segment * (2 if self._end.within else 1)

    def _open(self, start: FilePosition) -> int:
        name = f"{start.offset:016d}-{start.number:012d}-{int(start.within)}{_SUFFIX}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._file = os.open(self._folder / name, flags, 0o600)
        self._start = self._end = start
        self._make_room()
        return self._file

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _make_room(self) -> None:
        """Removes the oldest files until the rest is within the bound. The last file stays."""
        with contextlib.suppress(OSError):
            files = segments(self._folder)
            sizes = [s.path.stat().st_size for s in files]
            total = sum(sizes) + self._segment
            for segment, size in zip(files[:-1], sizes, strict=False):
                if total <= self._bound:
                    break
                segment.path.unlink(missing_ok=True)
                total -= size
