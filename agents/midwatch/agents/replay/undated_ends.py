"""Undated ends: the word of an end that stands below the last clock of its file.

A shell's `Killed` and an exception that leaves its script print no time. They have that of the nearest clock
above. That may be hours old: an `.err` prints a clock at the start, and its `.out` one with each step. So
where such steps undid all failures, the job is judged again, with these words at the last clock of all files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from midwatch.agents.detect.diagnosis.noted_lines import ended_its_process
from midwatch.agents.replay.reading.line_order import no_earlier
from midwatch.agents.replay.reading.log_files import LogFile, last_lines
from midwatch.agents.replay.reading.printed_times import last_printed
from midwatch.agents.replay.went_on.aftermath import tells_an_end
from midwatch.streams.lines.times import printed_time
from midwatch.streams.records import Hit, Hits


def with_late_ends(files: Sequence[LogFile], hits: Sequence[Hit]) -> list[LogFile]:
    """The files of the job, of which some end late; nothing if none does, or if they say so already.

    Raises OSError.
    """
    if len(files) == 1 or any(file.ends_late for file in files):
        return []
    own: dict[str, list[Hit]] = defaultdict(list)
    for hit in hits:
        own[hit.line.path].append(hit)
    told = {file.path for file in files if _first_end(file, own[file.path])}
    return [replace(file, ends_late=file.path in told) for file in files] if told else []


def last_clock(files: Sequence[LogFile]) -> float | None:
    """The last time that any of the files prints, where one of them ends late. Raises OSError."""
    if not any(file.ends_late for file in files):
        return None
    return max((time for time in map(last_printed, files) if time is not None), default=None)


def ended_late(file: LogFile, record: Hits, clock: float) -> Hits:
    """The last record of the file, whose lines from such a word on are no earlier than the clock."""
    first = _first_end(file, record.hits)
    return no_earlier(record, first, clock) if file.ends_late and first else record


def _first_end(file: LogFile, hits: Iterable[Hit]) -> int:
    """The number of the first line below the last clock of the file that tells of an end; 0 if none does."""
    told = [hit.line.number for hit in hits if tells_an_end(hit) or ended_its_process(hit)]
    return min(_undated(file, told), default=0) if told else 0


def _undated(file: LogFile, numbers: Iterable[int]) -> Iterator[int]:
    """Those of the last lines that stand below the last printed time."""
    lines = last_lines(file)
    dated = (
        number for number, line in reversed(lines) if printed_time(line, read_at=file.modified) is not None
    )
    last = next(dated, lines[0][0] - 1 if lines else 0)
    return (number for number in numbers if number > last)
