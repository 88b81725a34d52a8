"""Queued starts: of several commands of srun in one file, one was cancelled while it waited. Pure.

A command that never got its nodes did nothing. Where another one had got them, and prints behind it, the file
is that one's.
"""

from __future__ import annotations

import re

_CANCELLED = re.compile(
    rb"srun: (?:Job has been cancel|Force Terminated job"
    rb"|error: Unable to allocate resources: Job/step already)"
)
_GIVEN = b"has been allocated resources"
_OF_SRUN = re.compile(rb"\s*(?:srun: |\Z)")
_BEHIND = 16 * 1024


def is_of_a_queued_start(text: bytes, start: int, end: int) -> bool:
    """Whether the line tells of a cancelled wait, and another command, which had its nodes, prints behind."""
    if _CANCELLED.match(text, start, end) is None or text.rfind(_GIVEN, 0, start) < 0:
        return False
    return any(_OF_SRUN.match(line) is None for line in text[end + 1 : end + 1 + _BEHIND].split(b"\n")[:-1])
