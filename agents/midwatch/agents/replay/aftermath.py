"""The aftermath: what a log shows behind its last failure line. A program that goes on had not failed.

A live watch sees the end of the job itself. A saved log shows only its lines, so a long ordinary rest speaks
against an end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice

from midwatch.agents.replay.log_files import LogFile, lines_behind
from midwatch.streams.records import Hits

ENOUGH = 60
"""Ordinary lines behind a failure that show that the program went on."""
_READ = 400

# Stacks, dumps and summaries follow an end. They are no work that goes on.
_OF_THE_END = re.compile(
    r"\A(?:\s|$)|\A.{0,40}?(?:frame #\d+|#\d+ +0x|@ +0x|File \"|Traceback|wandb:|0x[0-9a-f]{6})"
    r"|\A[^A-Za-z]*\Z|\A[0-9a-f]{6,}-[0-9a-f]{6,} |\*\*\* |\bThread 0x"
    r"|\bbfc_allocator\.cc:\d+\]|\A(?:Limit|(?:Max)?InUse|NumAllocs|MaxAllocSize): +\d"
)


class LastFailure:
    """The last line of each file in which a failure's rule hit."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self._rules: set[str] = set()

    def take(self, record: Hits) -> None:
        """Note the failure lines of one record, those that are only counted included."""
        for hit in record.hits:
            if hit.role in ("cause", "consequence"):
                self._rules.add(hit.rule)
                self._note(hit.line.path, hit.line.number)
        for more in record.counts:
            if more.rule in self._rules:
                self._note(more.path, more.last_number)

    def _note(self, path: str, number: int) -> None:
        self.numbers[path] = max(number, self.numbers.get(path, 0))


def went_on(file: LogFile, last: int) -> bool:
    """Whether enough ordinary lines stand behind line `last` of the file. Reads at most a few hundred."""
    behind = islice(lines_behind(file, last), _READ)
    return _ordinary(behind) >= ENOUGH


def _ordinary(lines: Iterable[str]) -> int:
    return sum(_OF_THE_END.search(line) is None for line in lines)
