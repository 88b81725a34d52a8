"""The closing lines: the failure that only the end of a saved log shows, because no rule knows its words.

A live watch learns from the scheduler how the job ended. A saved log ends where its program or its copy
ended. Three ends speak for a failure all the same:

- A Python traceback whose exception is missing.
- An error as the very last line.
- What a terminal or a shell prints when it ends a program.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from midwatch.agents.replay.log_files import LogFile, last_lines
from midwatch.streams.lines.launcher_prefix import front
from midwatch.streams.lines.log_levels import is_quiet, stands_aside
from midwatch.streams.records import Hit

_ABOVE = 3
"""Lines above a traceback's header in which the program may say what it met."""
_LONGEST = 120
"""The most lines of an end that are read."""
_UNKNOWN = "exception"

CUT = "the log ends within a traceback"
SAID = "the log ends with an error that no rule knows"
ENDED = "the log ends with what a terminal or a shell prints when a program is ended"

_HEADER = re.compile(rb"Traceback \(most recent call last\):?\s*\Z")
_FRAME = re.compile(rb"\A\s*File \"[^\"]*\", line \d+|\A\s*-+> ?\d+ ")
_SOURCE = re.compile(rb"\A\s{2,}\S|\A\s*[\^~]+\s*\Z")
_CARETS = re.compile(rb"\A\s*[\^~]+\s*\Z")
_LEFT_OUT = re.compile(rb"\A\s*(?:\[?\.\.\.\]?)?\s*\Z")
# Python announces with these words that the program goes on behind the traceback, or only a thread ends.
_GOES_ON = re.compile(rb"Exception ignored |--- Logging error ---|Exception in thread |in atexit callback")
_SAYS_WHY = re.compile(
    rb"(?i)\b(?:error|fatal|fail(?:ed|ure)?|can ?not|could ?n[o']t|unable|abort(?:ed|ing)?|timed out|exceeded"
    rb"|refused|denied|invalid|corrupt(?:ed)?|killed)\b"
)
# Behind a clock, numbers or a name, the level that a logger prints; or the first word of the line itself.
_STAMPED = re.compile(
    rb"\A(?:[^a-z]|[A-Z][a-z]{2}\b){0,48}(?:[\w.-]+ ?[:|-] ?)?\[?\b(?:ERROR|CRITICAL|FATAL)\b"
)
_BEGINS = re.compile(
    rb"\A\W*(?:Error(?: in| when| while|(?: occurr?ed)? during| \w+ing\b|: )|Fatal(?: error)?: "
    rb"|Failed to )(?! *\d)"
)
_MEASURED = re.compile(rb"[:=] ?\d[\d.]*%?\s*\Z")
# Whole lines. In the middle of a log they may be anything, so no rule looks for them.
_ENDED = (
    (re.compile(rb"\s*(?:\^[CZ\\])+\s*"), "user_interrupt"),
    (re.compile(rb"(?:Quit|User defined signal [12])(?: \(core dumped\))?\s*"), "cancelled"),
    (re.compile(rb"(?:Aborted|Stack overflow)\s*"), "native_crash"),
    (re.compile(rb"[Oo]ut of memory[.!]?\s*"), "host_oom"),
)


class ClosingFailure(NamedTuple):
    """The line that tells most of such an end. `how`: `CUT`, `SAID` or `ENDED`."""

    path: str
    number: int
    error_type: str
    how: str


def closing_failure(file: LogFile, hits: Sequence[Hit]) -> ClosingFailure | None:
    """The failure in which the file ends, if its end looks like one.

    `hits`: all of the file. A line that a rule knows is no unknown error. Above a traceback it gives its
    type, though its writer calls it a warning.
    """
    lines = last_lines(file)
    while lines and _LEFT_OUT.match(lines[-1][1]):
        lines.pop()
    known = {hit.line.number: hit for hit in hits if hit.line.path == file.path}
    header = _header(lines)
    if header is None:
        number, last = lines[-1] if lines else (0, b"")
        for pattern, error_type in _ENDED:
            if number not in known and pattern.fullmatch(last[front(last) :]):
                return ClosingFailure(file.path, number, error_type, ENDED)
        first = _first_of_the_last_errors(lines, known)
        return None if first is None else ClosingFailure(file.path, first, _UNKNOWN, SAID)
    above = lines[max(header - _ABOVE, 0) : header]
    if any(_GOES_ON.search(line) for _, line in above):
        return None
    for number, line in reversed(above):
        hit = known.get(number)
        if hit is not None and hit.aside:
            return ClosingFailure(file.path, number, hit.error_type, CUT)
        if _SAYS_WHY.search(line):
            return ClosingFailure(file.path, number, _UNKNOWN, CUT)
    number = next(
        number for number, line in reversed(lines[header:]) if not _CARETS.match(line[front(line) :])
    )
    return ClosingFailure(file.path, number, _UNKNOWN, CUT)


def _header(lines: Sequence[tuple[int, bytes]]) -> int | None:
    """The index of the header of a traceback that fills the rest of the lines; None without one."""
    for index in range(len(lines) - 1, max(len(lines) - 1 - _LONGEST, -1), -1):
        line = lines[index][1]
        words = line[front(line) :]
        if _HEADER.search(words):
            return None if is_quiet(line) else index
        above = lines[index - 1][1] if index else b""
        if not (_FRAME.match(words) or _SOURCE.match(words) or _FRAME.match(above[front(above) :])):
            return None
    return None


def _first_of_the_last_errors(lines: Sequence[tuple[int, bytes]], known: Collection[int]) -> int | None:
    """The number of the first line of those errors, without any other line, in which the lines end."""
    first = None
    for number, line in reversed(lines[-_LONGEST:]):
        if _LEFT_OUT.match(line):
            continue
        if number in known or stands_aside(line) or not _is_error(line):
            break
        first = number
    return first


def _is_error(line: bytes) -> bool:
    begins = _BEGINS.match(line[front(line) :]) is not None and _MEASURED.search(line) is None
    return begins or _STAMPED.match(line) is not None
