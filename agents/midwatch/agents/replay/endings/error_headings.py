"""Error headings: a line that says only that an error comes, and the error's words below it. Pure.

A program that prints an exception so gives it no name, and no rule knows the words. In the middle of a log
such lines may be of anything. So they count near the end only, where no step follows. Where the same heading
stood for others before, and the last line is of a quieter level, the program went on to sum up.
"""

from __future__ import annotations

import re

from midwatch.agents.replay.endings.cut_tracebacks import Numbered
from midwatch.streams.lines.launcher_prefix import front
from midwatch.streams.lines.log_levels import goes_on, is_quiet

HEADED = "the log ends below a heading of an error, in words that no rule knows"

_HEADING = re.compile(
    rb"(?:\A|[^\w\s,;]|\d(?=[A-Z])|\. )\W{0,3}"
    rb"(?i:(?:(?:fatal|internal|unexpected|unhandled|uncaught|runtime) )?(?:error|exception)"
    rb"(?: (?:raised|occurr?ed|caught|description|message|details?|text))?)\s*:\s*\Z"
)
_WORDS = re.compile(rb"\A(?!.*Traceback \()[^\n]*?[^\W\d_]{2,}.*\s.*[^\W\d_]{2,}")
_MEASURE = re.compile(rb"\A\W*[\w /-]{1,30}[:=] ?[-+]?\d[\d.e+-]*%?\s*\Z")
_MOST_BEHIND = 32
"""Lines from the heading to the end: the words, a stack, an advice."""
_LONGEST = 400  # bytes: a longer line is a sample or a dump
_OFTEN = 3
_SAME = 12  # letters with which headings of one kind begin
_NO_LETTERS = re.compile(rb"[\W\d_]+")


def error_below_a_heading(lines: Numbered) -> tuple[int, bytes] | None:
    """The first line of such words with its number; None without any. `lines`: the last ones of a log."""
    shown = [(number, line[front(line) :]) for number, line in lines if line.strip()]
    last = shown[-_MOST_BEHIND:]
    sums_up = any(is_quiet(line) for number, line in lines if last and number == last[-1][0])
    for at in range(len(last) - 1):
        number, words = last[at + 1]
        if max(len(words), len(last[at][1])) > _LONGEST or _HEADING.search(last[at][1]) is None:
            continue
        if sums_up and _stands_often(last[at][1], shown):
            continue
        told = _WORDS.search(words) is not None and _MEASURE.match(words) is None
        if told and not (goes_on(words) or is_quiet(words) or is_quiet(last[at][1])):
            return number, words
    return None


def _stands_often(heading: bytes, lines: Numbered) -> bool:
    """Whether more such headings stand there, each of another item."""
    begins = _letters(heading)
    alike = {line for _, line in lines if _letters(line) == begins and _HEADING.search(line)}
    return len(alike) >= _OFTEN


def _letters(line: bytes) -> bytes:
    return _NO_LETTERS.sub(b"", line)[:_SAME]
