"""The aftermath: what a log shows behind its last failure line. A program that goes on had not failed.

A live watch sees the end of the job itself. A saved log shows only its lines, so a long ordinary rest speaks
against an end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice, pairwise

from midwatch.agents.replay.log_files import LogFile, lines_behind
from midwatch.streams.records import Hits

ENOUGH = 60
"""Ordinary lines behind a failure that show that the program went on. Each drawing of a bar counts as one."""
_READ = 400
_AGAIN = 6  # times that a program said the same words, and
_FEW = 5  # ordinary lines behind each time, that show that it gets over them
_READ_BEFORE = 2000

# Stacks, dumps and summaries follow an end. They are no work that goes on.
_OF_THE_END = re.compile(
    r"\A(?:\s|$)|\A.{0,40}?(?:frame #\d+|#\d+ +0x|@ +0x|File \"|Traceback|wandb:|0x[0-9a-f]{6})"
    r"|\A[\W\d_]*\Z|\A[0-9a-f]{6,}-[0-9a-f]{6,} |\*\*\* |\bThread 0x"
    r"|\bscripts\.py:\d+ -- (?:Killed|Attempted to stop|Send termination request to|Stopped) "  # ray stop
    r"|\(\S*\+0x[0-9a-f]+\) ?\[0x[0-9a-f]+\]\s*\Z"  # glibc backtrace_symbols
    r"|\bbfc_allocator\.cc:\d+\]|\A(?:Limit|(?:Max)?InUse|NumAllocs|MaxAllocSize): +\d"
)

# A bare number with a fraction: what a loop prints of its loss. Dumps print whole or hexadecimal numbers.
_LOSS = re.compile(r"\A\s*-?\d+\.\d+(?:e-?\d+)?\s*\Z")
_DIGITS = re.compile(r"\d+")
_OF_ONE_OF_MANY = re.compile(r"(?i)\brank ?\d|\bpid=|\A\s*\d+: |\A\[\d")
_OF_A_TRACEBACK = re.compile(r"\s+\S|.*\bFile \"|\s*[\^~]+\s*\Z")
# A bar that is drawn anew stands behind the one before in the same line.
_DRAWN_ANEW = re.compile(r"\r+(?=[^\r\n])")


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


# Ray prints the lines of its workers with their names. They work on for a while when their driver has ended.
_OF_A_WORKER = re.compile(r"\A\([\w.:<>]{1,80} pid=\d+(?:, ip=[\d.]+)?\)")


def went_on(file: LogFile, last: int) -> bool:
    """Whether enough ordinary lines stand behind line `last` of the file. Reads at most a few hundred."""
    own, *rest = islice(lines_behind(file, last - 1), 1 + _READ)
    if _OF_A_WORKER.match(own) is None:
        rest = [line for line in rest if _OF_A_WORKER.match(line) is None]
    behind = (drawn for line in rest for drawn in _drawings(line))
    work = _ordinary(islice(behind, _READ))
    return work >= ENOUGH or (work >= _FEW and _got_over_it_before(file, last, work))


def _got_over_it_before(file: LogFile, last: int, work: int) -> bool:
    """Whether the program printed the words of line `last` again and again, and each time worked on.

    It must have caught the exception itself: no traceback stands above its words. `work`: the ordinary lines
    behind the last time. Ranks print the same words too, so words with a rank or a worker do not count.
    """
    first = max(last - _READ_BEFORE, 0)
    lines = list(islice(lines_behind(file, first), last - first))
    if len(lines) < last - first or _OF_ONE_OF_MANY.search(lines[-1]):
        return False
    words = _DIGITS.sub("0", lines[-1].strip())
    times = [index for index, line in enumerate(lines) if _DIGITS.sub("0", line.strip()) == words]
    between = [_ordinary(lines[one + 1 : other]) for one, other in pairwise(times[-_AGAIN:])]
    printed = all(index and _OF_A_TRACEBACK.match(lines[index - 1]) is None for index in times[-_AGAIN:])
    return len(between) == _AGAIN - 1 and printed and min(between) >= _FEW and 2 * work >= min(between)


def _drawings(line: str) -> list[str]:
    """What stood in the line, one after the other. A bar may begin with blanks, as a stack does."""
    drawn = _DRAWN_ANEW.split(line)
    return drawn if len(drawn) == 1 else [each.lstrip() for each in drawn]


def _ordinary(lines: Iterable[str]) -> int:
    return sum(_OF_THE_END.search(line) is None or _LOSS.match(line) is not None for line in lines)
