"""Reads one file as it grows, by polling, so that it works on NFS and Lustre too.

The file itself is the buffer: unread and unacknowledged lines are read from it, if need be again. An
unfinished last line waits for a moment and is then sent as it is. It may be a prompt, or the last output of
a process that died within a line.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from midwatch.shippers.files.fingerprint import Probe, extended
from midwatch.streams.line_feeds import line_feeds
from midwatch.streams.lines.blocks import LARGEST_CONTEXT
from midwatch.streams.lines.normalise import LONGEST_RAW_LINE, whole_lines
from midwatch.streams.records import Generation

HOLD = 2.0
"""Seconds for which an unfinished line may wait for its end."""

PATIENCE = 10.0
"""Seconds for which NULs may stand for bytes that a network file system has not brought yet."""


@dataclass(frozen=True, slots=True)
class Now:
    """The readings of both clocks at one moment, in seconds."""

    wall: float
    monotonic: float


@dataclass(frozen=True, slots=True)
class FilePosition:
    """A place in a file: the number of bytes before it, and the number of its line.

    `within`: the line's beginning was already sent, without its newline.
    """

    offset: int = 0
    number: int = 1
    within: bool = False


@dataclass(frozen=True, slots=True)
class ReadBlock:
    """Raw lines as they were read, and their place.

    `lead`: the lines before the first block of a start. They are only context, because a traceback may have
    begun there, and are not sent again.
    """

    path: str
    generation: Generation
    start: FilePosition
    end: FilePosition
    raw: bytes
    read_before: float
    read_at: float
    lead: bytes = b""


class Tail:
    """Follows one generation of one file through its descriptor, whatever becomes of its name."""

    def __init__(
        self, descriptor: int, path: str, generation: Generation, position: FilePosition, *, base: int = 0
    ) -> None:
        self.descriptor = descriptor
        self.path = path
        self.leaving = False
        """No followed path names the file any more: drain it, then close it."""
        self.ended = False
        """The file was truncated: its unread content is gone."""
        self.complete = False
        """Nobody will write to the file any more, so an unfinished line is read as it is."""
        self.unpacked = False
        """The descriptor is of an unpacked copy, so another file may have its device and inode by now."""
        self.modified_ns = 0
        self.quiet_since = 0.0
        self.probe = Probe(0, 0)
        self._base = base  # offset of the file's first byte in the stream that it is a part of
        self._wall = 0.0  # at the last look
        self._read_before = 0.0
        self._tried: int | None = None  # the size at which `read` last found no whole line
        self._held: tuple[int, float] | None = None  # offset of an unfinished line, and since when
        self._nuls: tuple[int, float] | None = None
        self.resume(generation, position)

    def resume(self, generation: Generation, position: FilePosition) -> None:
        """Goes on from `position`, as that generation."""
        self.generation = generation
        self.position = position
        """The file is read up to here."""
        self.acknowledged = position
        """The broker has everything before this place."""
        self.size = position.offset
        self.probe = extended(Probe(0, 0), self.descriptor, position.offset - self._base)
        self._handed = position.offset  # offset behind the last block, which the broker will acknowledge
        self._leads = True  # whether the next block is the first after `resume` or `rewind`

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode."""
        return self.generation.device, self.generation.inode

    @property
    def at_end(self) -> bool:
        """Whether all bytes that the last look saw are read."""
        return self.ended or self.position.offset >= self.size

    @property
    def settled(self) -> bool:
        """Whether the broker acknowledged all that was read."""
        return self.acknowledged.offset >= self._handed

    @property
    def waiting(self) -> int:
        """Number of bytes that the last look saw and that are not read yet."""
        return 0 if self.ended else max(0, self.size - self.position.offset)

    def end(self) -> FilePosition:
        """The position behind the present last byte. Counts the lines before it and sends none."""
        offset, number, last = self._base, 1, b"\n"
        while block := os.pread(self.descriptor, LONGEST_RAW_LINE, offset - self._base):
            offset, number, last = offset + len(block), number + line_feeds(block), block[-1:]
        return FilePosition(offset, number, within=last != b"\n")

    def look(self, now: Now) -> bool:
        """Notes the file's size; False if the file was truncated."""
        if self.ended:
            return True
        if self.at_end:
            self._read_before = self._wall
        status = os.fstat(self.descriptor)
        size, self._wall = self._base + status.st_size, now.wall
        if size != self.size:
            self.quiet_since = now.monotonic
            if size < self.position.offset or not self.probe.fits(self.descriptor):
                return False
        self.size, self.modified_ns = size, status.st_mtime_ns
        return True

    def read(self, limit: int, now: Now, *, flush: bool = False) -> ReadBlock | None:
        """The next whole lines, about `limit` bytes at most; None if there are none yet.

        Reads no further than the last look saw. `flush` reads an unfinished last line as well, because nobody
        will finish it.
        """
        flush = flush or self.complete
        if self.at_end or (self._tried == self.size and self._still_held(now) and not flush):
            return None
        raw = self._continued(self._bytes(limit))
        raw, shortened = self._before_nuls(raw, now, flush=flush)
        count = whole_lines(raw)
        if not count and raw and not shortened:
            raw = self._bytes(LONGEST_RAW_LINE)
            count = whole_lines(raw) or (len(raw) if flush else self._unfinished(raw, now))
        self._tried = None if count else self.size
        if not count:
            return None
        self._held = None
        return self._block(raw[:count], now)

    def rewind(self) -> int:
        """Goes back to the acknowledged place; returns how many bytes cannot be read again."""
        lost = 0
        if self.ended:
            lost = self._handed - self.acknowledged.offset
            self.acknowledged = self.position
        else:
            self.position = self.acknowledged
        self._handed = self.position.offset
        self._held = self._tried = None
        self._leads = True
        return lost

    def close(self) -> None:
        """Closes the file."""
        os.close(self.descriptor)

    def _bytes(self, limit: int) -> bytes:
        return os.pread(self.descriptor, min(limit, self.waiting), self.position.offset - self._base)

    def _block(self, raw: bytes, now: Now) -> ReadBlock:
        start = self.position
        self.position = FilePosition(
            start.offset + len(raw), start.number + line_feeds(raw), within=not raw.endswith(b"\n")
        )
        self._handed = self.position.offset
        self.probe = extended(self.probe, self.descriptor, self.position.offset - self._base)
        lead, self._leads = self._lead(start) if self._leads else b"", False
        return ReadBlock(
            self.path, self.generation, start, self.position, raw, self._read_before, now.wall, lead
        )

    def _lead(self, start: FilePosition) -> bytes:
        """The lines before a place, as many as a chunk may hold as context."""
        known = start.offset - self._base
        size = min(LARGEST_CONTEXT, known)
        raw = os.pread(self.descriptor, size, known - size)
        return raw if size == known else raw[raw.find(b"\n") + 1 or len(raw) :]

    def _still_held(self, now: Now) -> bool:
        if self._nuls is not None:
            return now.monotonic - self._nuls[1] < PATIENCE
        return self._held is not None and now.monotonic - self._held[1] < HOLD

    def _continued(self, raw: bytes) -> bytes:
        """Skips a newline whose line was already sent: alone it is no line."""
        if not self.position.within:
            return raw
        for newline in (b"\n", b"\r\n"):
            if raw.startswith(newline):
                at = self.position
                self.position = FilePosition(at.offset + len(newline), at.number + 1)
                return raw[len(newline) :]
        return raw

    def _before_nuls(self, raw: bytes, now: Now, *, flush: bool) -> tuple[bytes, bool]:
        """The bytes before trailing NULs that may still become text, and whether it left NULs out."""
        if flush or not raw.endswith(b"\0"):
            self._nuls = None
            return raw, False
        text = raw.rstrip(b"\0")
        if self.position.offset + len(raw) >= self.size:
            at = self.position.offset + len(text)
            if self._nuls is None or self._nuls[0] != at:
                self._nuls = (at, now.monotonic)
            if now.monotonic - self._nuls[1] < PATIENCE:
                return text, True
        if text:
            return raw, False
        # A truncation leaves this hole before a writer that does not append.
        self._skip_hole(len(raw))
        return b"", True

    def _skip_hole(self, known: int) -> None:
        behind = self.position.offset + known
        try:
            data = os.lseek(self.descriptor, behind - self._base, os.SEEK_DATA) + self._base
        except OSError:  # only a hole up to the end, or a file system without SEEK_DATA
            data = behind
        self.position = FilePosition(max(behind, data), self.position.number, within=self.position.within)

    def _unfinished(self, raw: bytes, now: Now) -> int:
        """How many bytes of an unfinished line to send: none at first, and all once the file is quiet.

        Of a long chain of progress bars, each ended by a CR, it is the part that will not change any more.
        """
        if self._held is None or self._held[0] != self.position.offset:
            self._held = (self.position.offset, now.monotonic)
        if now.monotonic - self._held[1] < HOLD:
            return 0
        if now.monotonic - self.quiet_since >= HOLD:
            return len(raw)
        last = raw.rfind(b"\r", 0, len(raw) - 1) + 1
        return last if raw[last : last + 1] != b"\n" else 0
