"""Undated ends: the word of an end that stands below the last clock of its file.

A shell's `Killed` and an exception that leaves its script print no time. They have that of the nearest clock
above. That may be hours old: an `.err` prints a clock at the start, and its `.out` one with each step. Such a
word was written when its process ended, so it stands no earlier than the last clock of all files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from midwatch.agents.detect.diagnosis.noted_lines import ended_its_process
from midwatch.agents.replay.reading.log_files import LogFile, last_lines
from midwatch.agents.replay.reading.printed_times import last_printed
from midwatch.agents.replay.went_on.aftermath import tells_an_end
from midwatch.streams.lines.times import printed_time
from midwatch.streams.records import Hits


class UndatedEnds:
    """The ends of the files of one job. It reads a file only if the last lines tell of an end."""

    def __init__(self, files: Sequence[LogFile]) -> None:
        self._files = files

    def moved(self, file: LogFile, record: Hits) -> Hits:
        """The last record of the file, with the lines from such a word on at the last clock of all files.

        Raises OSError.
        """
        told = [hit.line.number for hit in record.hits if tells_an_end(hit) or ended_its_process(hit)]
        if not told or len(self._files) == 1:
            return record
        dated = _last_dated(file)
        first = min((number for number in told if number > dated), default=None)
        return record if first is None or self._end is None else _from_line(record, first, self._end)

    @cached_property
    def _end(self) -> float | None:
        times = map(last_printed, self._files)
        return max((time for time in times if time is not None), default=None)


def _last_dated(file: LogFile) -> int:
    """The number of the last line that prints a time; that above the last lines if none of them does."""
    lines = last_lines(file)
    for number, line in reversed(lines):
        if printed_time(line, read_at=file.modified) is not None:
            return number
    return lines[0][0] - 1 if lines else 0


def _from_line(record: Hits, first: int, end: float) -> Hits:
    """The record whose lines from that number on are no earlier than `end`."""
    hits = tuple(
        replace(hit, line=replace(hit.line, time=max(hit.line.time, end)))
        if hit.line.number >= first
        else hit
        for hit in record.hits
    )
    progress = tuple(
        replace(
            column,
            times=tuple(
                max(time, end) if number >= first else time
                for number, time in zip(column.numbers, column.times, strict=True)
            ),
        )
        for column in record.progress
    )
    stops = tuple(
        replace(stop, time=max(stop.time, end)) if stop.number >= first else stop for stop in record.stops
    )
    return replace(record, hits=hits, progress=progress, stops=stops)
