"""Only warned of: a failure in the message of a warning, behind which its program printed on. Pure.

A message may have several lines, and only the first one has a clock and a level. What a client says of a
service is such a message. The program that warns of it has caught it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from midwatch.agents.replay.reading.log_files import LogFile, lines_behind
from midwatch.agents.replay.reading.printed_forms import CLOCK, LEVEL
from midwatch.streams.lines.log_levels import is_warning
from midwatch.streams.records import Hit

WARNED = "its writer only warned of the failure, and printed on"

_MESSAGE, _BEHIND = 4, 40
"""Lines from a failure up to the first one of its message, and down to the next record."""
_HEAD = 100
_CLOCK, _LEVEL = re.compile(CLOCK), re.compile(LEVEL)
_TRACEBACK = re.compile(r"Traceback \(most recent call last\)|\A\s+File \"")


def only_warned_of(known: Sequence[tuple[LogFile, int]], held: Sequence[Hit]) -> str:
    """`WARNED` if all held failures are such; "" otherwise. `known`: their files. Raises OSError."""
    of = {file.path: file for file, _ in known}
    warned = [hit.line.path in of and _is_warned_of(of[hit.line.path], hit.line.number) for hit in held]
    return WARNED if warned and all(warned) else ""


def _is_warned_of(file: LogFile, number: int) -> bool:
    first = max(number - 1 - _MESSAGE, 0)
    *above, own = islice(lines_behind(file, first), number - first)
    if _is_a_record(own) or own[:1].isspace():
        return False
    for line in reversed(above):
        if _TRACEBACK.search(line):
            return False
        if _is_a_record(line):
            follows = any(map(_is_a_record, islice(lines_behind(file, number), _BEHIND)))
            return is_warning(line.encode()) and follows
    return False


def _is_a_record(line: str) -> bool:
    head = line[:_HEAD]
    return _CLOCK.search(head) is not None and _LEVEL.search(head) is not None
