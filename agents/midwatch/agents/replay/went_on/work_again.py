"""Work again: a saved log of one process goes on for long behind its end, so another start has written that.

A process that ended prints no more than what its buffer held. Ranks and workers of one start may work on for
a while, so a file that speaks of such is left alone. So are lines whose clocks stand close to the end's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from midwatch.agents.replay.reading.log_files import LogFile, lines_behind, text_of
from midwatch.agents.replay.went_on.aftermath import ENOUGH, GONE, ordinary, printed_by, seconds_behind
from midwatch.agents.replay.went_on.process_ends import speaks_of_many
from midwatch.streams.lines.times import printed_time

_LONG, _FORMS = 300, 20
"""Ordinary lines, and lines that differ in more than their numbers, that no epilog prints."""
_BUFFERS = 16 * 1024
"""Bytes: twice what a program holds back whose output is no terminal's."""
_SAME = 3
"""Lines that a program printed before its end, too, and prints again minutes later."""
_READ = 4000

_DIGITS = re.compile(r"\d+")
_MEASURED = re.compile(r"\d\.\d")


def works_again(file: LogFile, last: int) -> bool:
    """Whether what stands behind line `last` of the file is another start's work. Raises OSError.

    It is long and manifold, or the very words stand above the line, too: with measures, or minutes before.
    """
    text = text_of(file)
    passed = seconds_behind(file, last)
    if not text or speaks_of_many(text) or (passed is not None and passed <= GONE):
        return False
    behind = list(ordinary(islice(lines_behind(file, last), _READ)))
    if len(behind) >= _LONG and len(set(map(_form, behind))) >= _FORMS:
        return True
    first = max(last - 1 - _READ, 0)
    above = set(map(_form, ordinary(islice(lines_behind(file, first), last - 1 - first))))
    again = [line for line in behind if _form(line) in above]
    measured = [line for line in again if _MEASURED.search(line)]
    if len(measured) >= ENOUGH and sum(len(line) + 1 for line in measured) > _BUFFERS:
        return True
    return passed is not None and _are_later(file, last, again)


def _are_later(file: LogFile, last: int, again: Sequence[str]) -> bool:
    """Whether enough of the lines were printed minutes behind line `last`, by their own clocks."""
    begun = printed_by(file, last)
    times = [printed_time(line.encode(), read_at=file.modified) for line in again]
    later = [time for time in times if time is not None and begun is not None and time - begun > GONE]
    return len(later) >= _SAME


def _form(line: str) -> str:
    """The line without its numbers."""
    return _DIGITS.sub("0", line.strip())
