"""Tried again: a program counts its tries, and a later try of the same work succeeded. Pure.

`connect failed, attempt 1` and `connect ok, attempt 2` differ in their numbers and in how the try ended.
Other work under another number (shard 3, fold 4) is no further try, so the line must name its tries. Some
print only what failed. Where `attempt 1/3` stands, no second one, and the program prints on, that one worked.
`try 3 failed` and `succeeded on try 4` are of one work, too: the numbers follow each other.
"""

from __future__ import annotations

import re
from itertools import islice

from midwatch.agents.replay.reading.log_files import LogFile, line_of, lines_behind
from midwatch.agents.replay.reading.printed_forms import without_clock

_READ = 400
_NEAR = 3
"""Lines beside the last failure in which the program says that this try failed."""
_GOES_ON = 8
"""Lines behind a try whose next one is not told of; a program may print a few more while it waits."""
_LEAST = 2
"""Words that both lines share, besides their tries and how these ended."""
_TRIES = re.compile(r"\b(?:attempts?|try|tries|retry|retries)\b")
_COUNTED = re.compile(r"(?i)\b(?:attempt|try|retry)[ #:]{1,2}(\d{1,3}) ?(?:/|of) ?(\d{1,3})\b")
_NUMBERED = re.compile(r"\b(?:attempt|try|retry)[ #:]{1,2}(\d{1,3})\b")
_AT_LAST = re.compile(
    r"\b(?:succeed(?:ed|s)|worked|successful|ok)\b.{0,24}"
    r"\b(?:on|at|in|with) (?:attempt|try|retry)[ #]{1,2}(\d{1,3})\b"
)
_FAILED = re.compile(r"\b(?:failed|failure|unsuccessful|timed out|no answer)\b")
_WORKED = re.compile(r"\b(?:succeeded|success|successful(?:ly)?|worked|ok)\b")
_SPOILT = re.compile(r"\b(?:not|nothing|none|never|no|without|giving up|gave up)\b")
_WORDS = re.compile(r"[a-z]{2,}")


def tried_again(file: LogFile, last: int) -> bool:
    """Whether the try that failed beside line `last` succeeded behind it. Raises OSError."""
    if _next_one_is_not_told_of(file, last):
        return True
    first = max(last - 1 - _NEAR, 0)
    beside = list(islice(lines_behind(file, first), last + _NEAR - first))
    behind = list(islice(lines_behind(file, last), _READ))
    next_ones = {
        number + 1 for line in beside if _FAILED.search(line) and (number := _number(line, _NUMBERED))
    }
    if any(_number(line, _AT_LAST) in next_ones for line in behind):
        return True
    failed = {words for line in beside if (words := _words(line, _FAILED))}
    return bool(failed) and any(_words(line, _WORKED) in failed for line in behind)


def _next_one_is_not_told_of(file: LogFile, last: int) -> bool:
    """Whether line `last` tells of a try that was not the last one, and no line behind it of another."""
    found = _COUNTED.search(line_of(file, last))
    if found is None or int(found[1]) >= int(found[2]):
        return False
    behind = [line for line in islice(lines_behind(file, last), _READ) if line.strip()]
    return len(behind) >= _GOES_ON and not any(_TRIES.search(line.lower()) for line in behind)


def _number(line: str, of_a_try: re.Pattern[str]) -> int:
    """The number of the try of which the line tells; 0 without one."""
    text = without_clock(line).lower()
    found = of_a_try.search(text)
    return int(found[1]) if found and not _SPOILT.search(text) else 0


def _words(line: str, ended: re.Pattern[str]) -> tuple[str, ...]:
    """The words of a line on one try, without how it `ended`; none where it is no such line."""
    text = without_clock(line).lower()
    left, times = ended.subn(" ", text)
    if times != 1 or not _TRIES.search(left) or _SPOILT.search(left):
        return ()
    words = tuple(_WORDS.findall(_TRIES.sub(" ", left)))
    return words if len(words) >= _LEAST else ()
