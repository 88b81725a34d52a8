"""Exceptions in notebooks: IPython names one above the traceback, and again with its words below. Pure.

It leaves the module out: of `zlib.error` only `error` is left. No rule may look for such a word. Source:
ipython/ipython IPython/core/ultratb.py.
"""

from __future__ import annotations

from midwatch.agents.replay.endings.cut_tracebacks import Numbered, are_frames, exception_named_in
from midwatch.streams.lines.launcher_prefix import front

_MOST_WORDS = 6
"""Lines of an exception's words."""
_OF_A_NETWORK = (b"timeout", b"gaierror", b"herror")
"""Names of the module `socket`."""


def named_below(lines: Numbered) -> tuple[int, bytes] | None:
    """The number of the line that repeats the name above the last traceback, and the name.

    None unless the lines end there, or in the exception's further words.
    """
    told = [(number, line[front(line) :]) for number, line in lines if line.strip()]
    for at in range(len(told) - 1, -1, -1):
        name = exception_named_in(told[at][1])
        if not name:
            continue
        named = (index for index in range(at + 2, len(told)) if told[index][1].startswith(name + b":"))
        last = next(named, None)
        if (
            last is None
            or len(told) - last > _MOST_WORDS
            or not are_frames([w for _, w in told[at + 1 : last]])
        ):
            return None
        return told[last][0], name
    return None


def type_of(name: bytes) -> str:
    """The error type that such a name tells; "" if it tells none."""
    return "communication" if name in _OF_A_NETWORK else ""
