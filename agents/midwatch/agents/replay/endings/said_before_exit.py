"""Said before the exit: what a program printed of its failure, where its launcher knows only an exit code.

A program that logs an error and leaves with a code of its own raises nothing. Then no rule knows its words,
and the launcher, the scheduler or `make` reports an exit code. The words stand right above that report. A
hook may print the frames and the words of an exception without its name, near that report.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from midwatch.agents.detect.diagnosis.hindsight import is_bare_end
from midwatch.agents.replay.endings.closing_lines import ClosingFailure, is_error
from midwatch.agents.replay.endings.closing_words import VAGUE, kind_of
from midwatch.agents.replay.endings.headless_tracebacks import words_of_a_headless_one
from midwatch.agents.replay.reading.log_files import LogFile, last_lines
from midwatch.streams.lines.launcher_prefix import front
from midwatch.streams.lines.log_levels import goes_on, stands_aside
from midwatch.streams.records import Hit

SAID = "the program's own last error stands above the report of its exit code, in words that no rule knows"

RAISED = "the words of an exception that nothing names stand beside the report of its process's end"

_NEAR = 12
"""Lines above the report, without tracebacks. The other ranks of a job print while one of them ends."""
_LONGEST = 160  # lines of a traceback that may stand between its words and the report
_OF_A_TRACEBACK = re.compile(rb"\s|\Z|Traceback \(")
_ERROR = re.compile(rb"\A\W*(?:\[?(?i:rank) ?\d+\]?\W*)?(?:(?:ERROR|FATAL)\b\W*\w|(?i:error|fatal): )")
_LOGGED = re.compile(rb"\A\W?\d[\d:.,T/ -]{7,}.{0,40}?\b(?:ERROR|CRITICAL|FATAL)\b")


def said_before_exit(file: LogFile, root: Hit, hits: Sequence[Hit], stepped: int) -> ClosingFailure | None:
    """The program's error above the report `root`, if that knows only an exit code.

    `hits`: all of the job. `stepped`: the last line of the file that printed a step; an error above it ended
    nothing, unless it stands with the last lines. Raises OSError.
    """
    if not is_bare_end(root):
        return None
    told = {hit.line.number: hit for hit in hits if hit.line.path == file.path and hit.role != "progress"}
    reports = [number for number, hit in told.items() if hit.role == "consequence" and _follows(hit, root)]
    first = min(reports, default=root.line.number)
    lines = last_lines(file)
    raised = words_of_a_headless_one(lines)
    if raised and raised[0] not in told and max(stepped, first - _LONGEST) < raised[0] < first + _LONGEST:
        words = next(line for number, line in lines if number == raised[0])
        return ClosingFailure(file.path, raised[0], kind_of(words) or VAGUE, RAISED)
    above = [each for each in lines if each[0] < first and each[0] not in told]
    shown = [each for each in above if _OF_A_TRACEBACK.match(each[1][front(each[1]) :]) is None][-_NEAR:]
    found: tuple[int, bytes] | None = None
    for number, line in reversed(shown):
        if _is_said(line) and (found is None or found[0] == number + 1):
            found = number, line
        elif found is not None:
            break
    if found is None or found[0] < stepped - _NEAR:
        return None
    return ClosingFailure(file.path, found[0], kind_of(found[1]) or VAGUE, SAID)


def _follows(hit: Hit, root: Hit) -> bool:
    """Whether it is of the same reports of ends as the root, or what a launcher does about them."""
    return hit.line.number <= root.line.number and root.line.number - hit.line.number <= 4 * _NEAR


def _is_said(line: bytes) -> bool:
    if stands_aside(line) or goes_on(line):
        return False
    logged = _LOGGED.match(line) or _ERROR.match(line[front(line) :])
    return logged is not None or is_error(line) or kind_of(line) != ""
