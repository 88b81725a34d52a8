"""Begun again: behind a traceback a program prints what it printed above it, and gets further. Pure.

A script that calls the same program again and again writes all of these runs to one file. Where nothing else
tells them apart, the program's own first lines do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import islice

from midwatch.agents.replay.reading.log_files import LogFile, lines_behind, text_of
from midwatch.agents.replay.reading.printed_forms import form_of_print, without_clock
from midwatch.agents.replay.went_on.aftermath import leaves_the_script, printed_by_a_handler
from midwatch.agents.replay.went_on.process_ends import speaks_of_many

_ABOVE, _BEHIND = 160, 400
_HEADER = re.compile(r"Traceback \(most recent call last\):\s*\Z")
_FRAME = re.compile(r"\s*File \"[^\"]*\", line \d+")
_OF_A_STACK = re.compile(r"\[0x[0-9a-f]+\]\Z")
"""A frame of a native stack. Its addresses are others in each run."""
_MESSAGE = 6
"""Lines behind the exception that may belong to its message."""
_FURTHER = 10
"""Lines of the second run behind what it prints as the first one did."""
_MEASURED = re.compile(r"\d\.\d")
_LEAST_MEASURED = 2
"""Measures among them, where the second run passed the very place at which the first one failed."""
_ALIKE, _FORMS = 3, 4
"""Else both print so many lines alike, and so many others differ from all above in more than numbers."""


def begun_again(file: LogFile, last: int) -> bool:
    """Whether the program whose traceback ends in line `last` began again and got further. Raises OSError."""
    last, text = _exception_of(file, last), text_of(file)
    if not text or speaks_of_many(text):
        return False
    above = _above_the_traceback(file, last)
    firsts = above
    if not leaves_the_script(file, last):
        # It was logged, and may have ended nothing. Then only the file's first line is of another run.
        firsts = above[:1] if last <= _ABOVE and printed_by_a_handler(file, last) else []
    behind = _printed(islice(lines_behind(file, last), _BEHIND))
    for at, line in enumerate(behind[:_MESSAGE]):
        for start in (index for index, earlier in enumerate(firsts) if earlier == line):
            alike = _alike(above[start:], behind[at:])
            rest = behind[at + alike :]
            passed = start + alike == len(above)
            if len(rest) >= _FURTHER and ((passed and _measures(rest)) or _is_new(above, rest, alike)):
                return True
    return False


def _exception_of(file: LogFile, last: int) -> int:
    """The line of the exception of whose message line `last` is. Such lines are indented."""
    first = max(last - _MESSAGE, 1)
    lines = list(islice(lines_behind(file, first - 1), last - first + 1))
    return next((first + at for at in reversed(range(len(lines))) if not lines[at][:1].isspace()), last)


def _above_the_traceback(file: LogFile, last: int) -> list[str]:
    """What is printed above the header of the traceback that ends in line `last`."""
    first = max(last - 1 - _ABOVE, 0)
    lines = list(islice(lines_behind(file, first), last - 1 - first))
    header = max((index for index, line in enumerate(lines) if _HEADER.search(line)), default=0)
    return _printed(lines[:header])


def _printed(lines: Iterable[str]) -> list[str]:
    """What the program itself prints: no frames, nor the code below each. TensorFlow shows them twice."""
    found, in_a_frame = [], False
    for line in lines:
        words = without_clock(line).strip()
        frame = _FRAME.match(line) is not None
        code = in_a_frame and line[:1].isspace()
        in_a_frame = frame
        if words and not (frame or code or _OF_A_STACK.search(words)):
            found.append(words)
    return found


def _alike(above: Sequence[str], behind: Sequence[str]) -> int:
    """How many of the lines both begin with, whatever their numbers. The first must be the same in all."""
    count = 0
    for earlier, later in zip(above, behind, strict=False):
        if form_of_print(earlier) != form_of_print(later):
            break
        count += 1
    return count


def _measures(rest: Sequence[str]) -> bool:
    return sum(1 for line in rest if _MEASURED.search(line)) >= _LEAST_MEASURED


def _is_new(above: Sequence[str], rest: Sequence[str], alike: int) -> bool:
    known = set(map(form_of_print, above))
    new = [form for form in map(form_of_print, rest) if form not in known]
    return alike >= _ALIKE and len(new) >= _FURTHER and len(set(new)) >= _FORMS
