"""The spool of a pipe as a source of lines: reads its files in order, removes those that have arrived."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from midwatch.shippers.files.fingerprint import Probe
from midwatch.shippers.files.sent_positions import Remembered
from midwatch.shippers.files.tail import FilePosition, Now, Tail
from midwatch.shippers.pipe.spool import Segment, ended, segments
from midwatch.streams.records import Generation

LABEL = "stdin"


class SpoolWatch:
    """Follows the files of one spool. `over`: whether the spool's writer is gone, even without an end."""

    def __init__(
        self, folder: Path, generation: Generation, remembered: Sequence[Remembered], over: Callable[[], bool]
    ) -> None:
        self._folder = folder
        self._generation = generation
        self._over = over
        self._position = remembered[0].position if remembered else FilePosition()
        self._opened: dict[Path, Tail] = {}
        self.tails: list[Tail] = []
        self.truncated = 0
        self.dropped = 0
        self.blind = False
        self.ended = False

    def poll(self, now: Now, *, rescan: bool = False) -> None:  # noqa: ARG002 (there is nothing else to scan)
        """Opens the next file once the last one is read, and removes files that have arrived."""
        over = ended(self._folder) or self._over()
        files = segments(self._folder)
        for tail in self.tails:
            tail.look(now)
        following = next((f for f in files if f.path not in self._opened), None)
        last = self.tails[-1] if self.tails else None
        if last and (following or over):
            last.complete = True
        if following and (not last or last.at_end):
            self._open(following, now)
            following = next((f for f in files if f.path not in self._opened), None)
        self.blind = following is not None
        self._remove()
        self.ended = over and not self.blind and all(t.at_end for t in self.tails)

    def acknowledge(self, generation: Generation, position: FilePosition) -> None:  # noqa: ARG002 (there is one)
        """Notes that the broker has the stream up to `position`."""
        self._position = position
        for tail in self.tails:
            if position.offset >= tail.position.offset:
                tail.acknowledged = tail.position
            elif position.offset > tail.acknowledged.offset:
                tail.acknowledged = position

    def remembered(self) -> tuple[Remembered, ...]:
        """The checkpoint's entry: how far the stream has arrived."""
        return (Remembered(LABEL, self._generation, self._position, Probe(0, 0), 0),)

    def rewind(self) -> None:
        """Goes back to what the broker acknowledged."""
        for tail in self.tails:
            tail.rewind()

    def close(self) -> None:
        """Closes all files."""
        for tail in self.tails:
            tail.close()
        self.tails.clear()

    def _open(self, segment: Segment, now: Now) -> None:
        try:
            descriptor = os.open(segment.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:  # the writer dropped it just now, to make room
            return
        start = segment.start
        reached = self.tails[-1].position if self.tails else self._position
        if reached.offset >= start.offset:
            start = reached
        else:
            self.dropped += start.offset - reached.offset
        tail = Tail(descriptor, LABEL, self._generation, start, base=segment.start.offset)
        tail.look(now)
        if tail.size < start.offset:  # the broker had all of it when the process died
            tail.resume(self._generation, start)
        self._opened[segment.path] = tail
        self.tails.append(tail)

    def _remove(self) -> None:
        for path, tail in list(self._opened.items()):
            if tail.complete and tail.at_end and tail.settled and tail is not self.tails[-1]:
                tail.close()
                self.tails.remove(tail)
                with contextlib.suppress(OSError):
                    path.unlink()
                del self._opened[path]
