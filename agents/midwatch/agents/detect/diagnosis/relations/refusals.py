"""Refusals: programs that did not take their command line, and what ran since. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import attrgetter

from midwatch.streams.records import Hit

_RULES = ("python_arguments", "command_line_wrong")
_DIGITS = re.compile(r"\d+")
ANOTHER_PROGRAM = 60
"""Lines: no program says so much behind its refusal of a command line, or behind its end."""


class Refusals:
    """By file, the last refusal of a command line, and the first cause that stands long behind it."""

    def __init__(self, causes: Sequence[Hit]) -> None:
        number = attrgetter("line.number")
        self._last: dict[tuple[str, str], Hit] = {}
        self._behind: dict[tuple[str, str], Hit] = {}
        for hit in causes:
            if hit.rule in _RULES:
                self._last[hit.line.file] = max(hit, self._last.get(hit.line.file, hit), key=number)
        for hit in causes if self._last else ():
            known = self._last.get(hit.line.file)
            if known is not None and hit.line.number - known.line.number >= ANOTHER_PROGRAM:
                self._behind[hit.line.file] = min(hit, self._behind.get(hit.line.file, hit), key=number)

    def later_program(self, hit: Hit) -> Hit | None:
        """What shows that another program ran behind the refusal `hit`: a late failure, or another refusal.

        Ranks of one start refuse in the same words, so only a refusal in other words is of a later start.
        """
        if hit.rule not in _RULES:
            return None
        behind, last = self._behind.get(hit.line.file), self._last[hit.line.file]
        again = last.line.number > hit.line.number and _words(last) != _words(hit)
        return behind or (last if again else None)


def _words(hit: Hit) -> str:
    """The words of a refusal, without numbers and what a launcher prints in front: each rank has its own."""
    return _DIGITS.sub("0", hit.line.text.rpartition("error: ")[2].strip())
