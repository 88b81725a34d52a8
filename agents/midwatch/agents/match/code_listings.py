"""Code listings: the source that IPython prints around the line that failed. Pure.

Each of its lines has a number in front, and an arrow marks the one that failed. Code, comments and docstrings
may hold the words of any error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from midwatch.streams.lines.launcher_prefix import front

_NUMBERED = re.compile(rb"[ \t]{0,12}(?:-{1,8}> ?|\(\.\.\.\)[ \t]{1,12})?\d{1,6}(?:[ \t]|\Z)")
_ARROW = re.compile(rb"-{2,8}> ?\d{1,6}(?:[ \t]|\Z)")
_SHORT_ARROW = re.compile(rb"-{1,8}> ?\d{1,6}(?:[ \t]|\Z)")
"""A number of four digits leaves room for one dash. Beside other numbered lines that is enough."""
_LEFT_OUT = re.compile(rb"\s*\(\.\.\.\)\s*\Z")
_FURTHER = 40
"""Lines of one listing on each side."""


def is_listed(text: bytes, start: int, end: int) -> bool:
    """Whether the line from `start` to `end` is code that such a listing shows."""
    words = _words(text[start:end])
    if _NUMBERED.match(words) is None:
        return False
    if _ARROW.match(words) is not None:
        return True
    return any(_marks(lines) for lines in (_above(text, start), _below(text, end)))


def _marks(lines: Iterator[bytes]) -> bool:
    """Whether one of the next lines has the arrow, before one without a number."""
    for line in lines:
        words = _words(line)
        if _SHORT_ARROW.match(words):
            return True
        if not (_NUMBERED.match(words) or _LEFT_OUT.match(words)):
            return False
    return False


def _words(line: bytes) -> bytes:
    return line[front(line) :]


def _above(text: bytes, start: int) -> Iterator[bytes]:
    end = start - 1
    for _ in range(_FURTHER):
        if end < 0:
            return
        begin = text.rfind(b"\n", 0, end) + 1
        yield text[begin:end]
        end = begin - 1


def _below(text: bytes, end: int) -> Iterator[bytes]:
    begin = end + 1
    for _ in range(_FURTHER):
        if begin >= len(text):
            return
        end = text.find(b"\n", begin)
        end = len(text) if end < 0 else end
        yield text[begin:end]
        begin = end + 1
