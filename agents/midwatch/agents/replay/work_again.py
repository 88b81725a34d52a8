"""Work again: a saved log of one process goes on for long behind its end, so another start has written that.

A process that ended prints no more than what its buffer held. Ranks and workers of one start may work on for
a while, so a file that speaks of such is left alone. So are lines whose clocks stand close to the end's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from midwatch.agents.replay.aftermath import ENOUGH, GONE, ordinary, seconds_behind
from midwatch.agents.replay.log_files import LogFile, lines_behind, text_of
from midwatch.agents.replay.process_ends import speaks_of_many

_LONG, _FORMS = 300, 20
"""Ordinary lines, and lines that differ in more than their numbers, that no epilog prints."""
_BUFFERS = 16 * 1024
"""Bytes: twice what a program holds back whose output is no terminal's."""
_READ = 4000

_DIGITS = re.compile(r"\d+")
_MEASURED = re.compile(r"\d\.\d")


def works_again(file: LogFile, last: int) -> bool:
    """Whether what stands behind line `last` of the file is another start's work. Raises OSError.

    It is long and manifold, or it is measured in the very words that stand above the line, too.
    """
    text = text_of(file)
    passed = seconds_behind(file, last)
    if not text or speaks_of_many(text) or (passed is not None and passed <= GONE):
        return False
    behind = list(ordinary(islice(lines_behind(file, last), _READ)))
    if len(behind) >= _LONG and len(set(map(_form, behind))) >= _FORMS:
        return True
    above = set(_measured(list(ordinary(islice(lines_behind(file, max(last - 1 - _READ, 0)), last - 1)))))
    again = [line for line in behind if _MEASURED.search(line) and _form(line) in above]
    return len(again) >= ENOUGH and sum(len(line) + 1 for line in again) > _BUFFERS


def _measured(lines: Sequence[str]) -> list[str]:
    return [_form(line) for line in lines if _MEASURED.search(line)]


def _form(line: str) -> str:
    """The line without its numbers."""
    return _DIGITS.sub("0", line.strip())
