"""Error stacks: one entry of several tells what failed, and stands last. Pure.

A C library numbers an entry for each call. An outer one says only that an inner one failed.
torchrun lists the workers that failed, and behind them the one that it observed first.
"""

from __future__ import annotations

import re

_ENTRY = re.compile(rb"#(\d{3}): \S+ line \d+ in \w+\(\): ")
_FURTHER_BYTES = 8192
_FURTHER = 12  # lines within which the next entry follows; others may write between
_WORKER = re.compile(rb"exitcode +: -?\d+ \(pid: |traceback : Signal \d+ \(SIG\w+\) received by PID ")
_LIST, _FIRST = b"Failures:", b"Root Cause (first observed failure):"
_REPORT, _OF_A_WORKER = 1 << 20, 1024  # bytes of a report, and of its part on one worker


def is_outer(text: bytes, start: int, end: int) -> bool:
    """Whether the line from `start` to `end` is an entry with another one below that tells more.

    That is a deeper entry of its stack, or the worker that ended first and in the same way.
    """
    return _is_of_an_outer_call(text, start, end) or _is_of_a_later_worker(text, start, end)


def _is_of_a_later_worker(text: bytes, start: int, end: int) -> bool:
    if text.find(b" : ", start, end) < 0:
        return False
    entry = _WORKER.search(text, start, end)
    first = -1 if entry is None else text.find(_FIRST, end, end + _REPORT)
    if entry is None or first < 0 or text.find(_LIST, end, first) >= 0:
        return False
    return text.find(entry[0], first, first + _OF_A_WORKER) >= 0


def _is_of_an_outer_call(text: bytes, start: int, end: int) -> bool:
    if text.find(b"(): ", start, end) < 0:
        return False
    entry = _ENTRY.search(text, start, end)
    if entry is None:
        return False
    deeper = b"#%03d: " % (int(entry[1]) + 1)
    writer = text[start : entry.start()]
    for line in text[end + 1 : end + 1 + _FURTHER_BYTES].split(b"\n")[:_FURTHER]:
        found = _ENTRY.search(line)
        if found is not None and line[: found.start()] == writer:
            return found[0].startswith(deeper)
    return False
