"""Recovered trials: Ray Tune lists what failed, though it tried again and all trials ended well. Pure.

A trial that `max_failures` saved keeps its error file, so the report counts it as errored.
"""

from __future__ import annotations

import re

_LISTED = (b"Number of errored trials: ", b"error.txt")
_LOOK_BACK = 32768  # bytes of one report
_STATUS = re.compile(rb"\bNumber of trials: (\d+)(/\d+)? \(([^()\n]*)\)|\bTrial status: ([^\n]*)")
_ALL_ENDED = re.compile(rb"\s*(\d+) TERMINATED\W*\Z")


def is_recovered(text: bytes, start: int, end: int) -> bool:
    """Whether the line counts or lists errored trials, and its report says that each trial ended well."""
    if not any(text.find(words, start, end) >= 0 for words in _LISTED):
        return False
    reports = [*_STATUS.finditer(text, max(start - _LOOK_BACK, 0), start)]
    return bool(reports) and _all_ended_well(reports[-1])


def _all_ended_well(status: re.Match[bytes]) -> bool:
    """Whether the line names no other status, and counts as many trials as there are to be."""
    ended = _ALL_ENDED.match(status[3] if status[4] is None else status[4])
    if ended is None:
        return False
    return status[4] is not None or (status[2] == b"/" + status[1] and ended[1] == status[1])
