"""Retried errors: a client announces a numbered try, and prints below what the last one met. Pure.

The words of the last try count. So does an error behind which nothing stands yet.
"""

from __future__ import annotations

import re

from midwatch.streams.lines.launcher_prefix import front

_ANNOUNCED = re.compile(rb"(?i)\bre-?trying\b[^\n]{0,40}?\((?:attempt )?(\d+) ?(?:/|of) ?(\d+)\)")
_MEETS = re.compile(rb"\A\W{0,4}Error: ")
_LONGEST = 4096  # bytes of the line above; a bar may be drawn in it


def is_retried(text: bytes, start: int, end: int) -> bool:
    """Whether the line is what a try met behind which another one was announced in the line above."""
    line = text[start:end]
    if _MEETS.match(line[front(line) :]) is None or not text[end:].strip():
        return False
    above = text.rfind(b"\n", max(start - _LONGEST, 0), max(start - 1, 0)) + 1
    told = _ANNOUNCED.search(text, above, start)
    return told is not None and int(told[1]) < int(told[2])
