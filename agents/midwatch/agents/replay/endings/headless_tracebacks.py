"""Headless tracebacks: the frames and the words of an exception, without the header and its name. Pure.

SwanLab's hook prints an exception so, and other programs that format it themselves. No rule knows such words.
Source: SwanHubX/SwanLab swanlab/data/callbacker/callback.py.
"""

from __future__ import annotations

import re

from midwatch.agents.replay.endings.cut_tracebacks import Numbered
from midwatch.streams.lines.launcher_prefix import front

_OUTERMOST = re.compile(rb'\A\s*File "[^"]*", line \d+, in <module>\s*\Z')
_OF_FRAMES = re.compile(rb'\A\s*File "[^"]*", line \d+|\A\s{2,}\S|\A\s*[\^~]+\s*\Z')
_OF_ANOTHER = re.compile(rb"(?i)most recent call|\bstack\b|\bdefined at\b|\btrace\b|\A\s+\S")
"""Lines above frames that are no exception's: a dump, a call stack of a logger, the place of an operation."""
_SHOWS_ITSELF = re.compile(rb"\b(?:print|format|extract)_stack\(|\bwarn\w*\(")
"""The code of a frame that prints where it stands. Nothing was raised there."""
_NO_WORDS = re.compile(rb"\A(?:Message|Arguments): |\A\w+(?:\.\w+)*Warning: |\A\s*\Z|\A[\W_]+\Z")
_LETTERS = re.compile(rb"[^\W\d_]{2}")
_MOST_WORDS = 6  # lines of an exception's words


def words_of_a_headless_one(lines: Numbered) -> tuple[int, int] | None:
    """The numbers of the first and the last line of the words of the last such exception; None without one.

    `lines`: the last ones of a log. The words end at an empty line, or after six lines.
    """
    own = [line[front(line) :] for _, line in lines]
    for at in range(len(own) - 1, -1, -1):
        if _OUTERMOST.match(own[at]) is None:
            continue
        if at and _OF_ANOTHER.search(own[at - 1]):
            return None
        end = at + 1
        while end < len(own) and _OF_FRAMES.match(own[end]):
            end += 1
        if end == len(own) or end < at + 2 or _SHOWS_ITSELF.search(own[end - 1]):
            return None
        if _NO_WORDS.match(own[end]) or not _LETTERS.search(own[end]):
            return None
        last = end
        while last + 1 < len(own) and last - end + 1 < _MOST_WORDS and own[last + 1].strip():
            last += 1
        return lines[end][0], lines[last][0]
    return None
