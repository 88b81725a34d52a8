"""The times of lines in a file at rest. Nobody watched the file grow, so no read confirms a printed time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from midwatch.agents.replay.log_files import LogFile
from midwatch.streams.lines.times import printed_time
from midwatch.streams.records import Section

_QUARTER = 900.0
_LOOK_BACK = 200  # lines searched for a printed time above one that has none
UNKNOWN = math.nan
"""The time of a line above the first printed time of its chunk; the chunks above know it."""


def undated(files: Sequence[LogFile]) -> list[float]:
    """For each file the time of lines that stand above the first printed time.

    Seconds, in the zone that the files print. It is the first printed time of the file, or the file's last
    write if the file prints none. Zones differ by quarters of an hour. So the last write moves by as many
    quarters as bring it closest to the latest printed time of all files.
    """
    first = [_first_printed(file.head().splitlines(), file.modified) for file in files]
    if all(time is not None for time in first):
        return [time for time in first if time is not None]
    last = (_first_printed(reversed(file.tail().splitlines()), file.modified) for file in files)
    printed = [time for time in last if time is not None]
    return [
        _in_zone(file.modified, printed) if time is None else time
        for file, time in zip(files, first, strict=True)
    ]


def _in_zone(modified: float, printed: Sequence[float]) -> float:
    if not printed:
        return modified
    return modified - round((modified - max(printed)) / _QUARTER) * _QUARTER


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
