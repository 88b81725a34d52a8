"""The times of lines in a file at rest. Nobody watched the file grow, so no read confirms a printed time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from midwatch.agents.replay.reading.last_writes import in_printed_zone
from midwatch.agents.replay.reading.log_files import LogFile
from midwatch.agents.replay.reading.rotated_files import in_rotation
from midwatch.streams.lines.times import printed_time
from midwatch.streams.records import Section

_LOOK_BACK = 200  # lines searched for a printed time above one that has none
UNKNOWN = math.nan
"""The time of a line above the first printed time of its chunk; the chunks above know it."""


def undated(files: Sequence[LogFile]) -> list[float]:
    """For each file the time of lines that stand above the first printed time.

    Seconds, in the zone that the files print. It is the first printed time of the file. For a file that
    prints none it is that of the last write, or `AT_ANY_TIME` if that tells nothing (`last_writes`). Names
    may tell more (`rotated_files`). Raises OSError.
    """
    first = [first_printed(file) for file in files]
    if all(time is not None for time in first):
        return [time for time in first if time is not None]
    last = [last_printed(file) for file in files]
    known = [time for time in (*first, *last) if time is not None]
    written = in_printed_zone([file.modified for file in files], last)
    # Where only the end of a file prints times, its first lines stand above them.
    times = [
        time if time is not None else min(known) if end is not None else at
        for time, end, at in zip(first, last, written, strict=True)
    ]
    return in_rotation(files, times)


def first_printed(file: LogFile) -> float | None:
    """The first time that the beginning of the file prints. Raises OSError."""
    return _first_printed(file.head().splitlines(), file.modified)


def last_printed(file: LogFile) -> float | None:
    """The last time that the end of the file prints. Raises OSError."""
    return _first_printed(reversed(file.tail().splitlines()), file.modified)


def _first_printed(lines: Iterable[bytes], modified: float) -> float | None:
    for line in lines:
        printed = printed_time(line, read_at=modified)
        if printed is not None:
            return printed
    return None


class PrintedTimes:
    """The time of a line in one section: the printed time of the line, or of the nearest line above.

    Without one it is that of the line asked before, and `UNKNOWN` above the first. The caller must ask in the
    order of the lines.
    """

    def __init__(self) -> None:
        self.latest = UNKNOWN
        self._asked: tuple[int, int, float | None] = (-1, 0, None)
        """Of the line asked before: its offset, the lines up to the printed time, and that time."""

    def __call__(
        self, section: Section, text: bytes, start: int, end: int, form: bytes | None = None
    ) -> float:
        """As `midwatch.agents.match.chunk_hits.When`."""
        if start == self._asked[0]:
            return self.latest  # of a line that another rule read, too
        printed = printed_time(text[start:end], read_at=section.read_at, form=form)
        distance = 0
        if printed is None:
            printed, distance = self._above(section, text, start)
        self._asked = (start, distance, printed)
        if printed is not None:
            self.latest = printed
        return self.latest

    def _above(self, section: Section, text: bytes, start: int) -> tuple[float | None, int]:
        """The nearest printed time above a line, and how many lines above it stands."""
        asked, further, known = self._asked
        floor = _behind_context(section, text)
        for distance in range(1, _LOOK_BACK):
            if start <= floor:
                break
            end = start - 1
            start = text.rfind(b"\n", 0, end) + 1
            if start == asked:
                whole = distance + further
                return (known if whole < _LOOK_BACK else None), whole
            printed = printed_time(text[start:end], read_at=section.read_at)
            if printed is not None:
                return printed, distance
        return None, 0


def _behind_context(section: Section, text: bytes) -> int:
    """The offset of the first line that no earlier section had."""
    start = 0
    for _ in range(section.context):
        start = text.index(b"\n", start) + 1
    return start
