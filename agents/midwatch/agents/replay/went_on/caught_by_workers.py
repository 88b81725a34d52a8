"""Exceptions that Ray's workers log and work on after: rollouts and rewards that failed, step after step.

Ray prints a worker's lines with its name. A worker's exception that ends the job stands there too, but its
words did not stand there before each of the steps. What the driver prints of an end has no such prefix.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence

from midwatch.agents.replay.reading.log_files import LogFile, lines_behind
from midwatch.streams.records import Hit, Hits

_STEPS = 2  # that stand behind the same words, each once
_MOST = 50_000  # lines of a file that are read
_DIGITS = re.compile(r"\d+")
_RAISED = re.compile(
    r"\A(?:\x1b\[[\d;]*m)*\((?P<worker>[A-Z]\w+) pid=\d+(?:, ip=[\d.]+)?\)(?:\x1b\[[\d;]*m)* "
    r"(?P<words>(?:\w+\.)*[A-Z]\w*(?:Error|Exception): .{1,16})"
)


class StepLines:
    """The lines of each file that print a step of the training, as far down as exceptions are read."""

    def __init__(self) -> None:
        self.numbers: dict[str, set[int]] = defaultdict(set)

    def take(self, record: Hits) -> None:
        """Note the step lines of one record."""
        for each in record.progress:
            if each.shows == "step" and each.steps:
                self.numbers[each.path].update(number for number in each.numbers if number <= _MOST)


def caught_by_workers(file: LogFile, failures: Sequence[Hit], last: int, steps: Sequence[int]) -> bool:
    """Whether all failures of the file, and line `last`, are a worker's words that steps came behind, twice.

    `steps`: the lines that print a step, in their order. Raises OSError.
    """
    kinds = {_kind(hit.line.text) if hit.error_type == "exception" else None for hit in failures}
    if len(steps) < _STEPS or None in kinds or not kinds:
        return False
    before = defaultdict[str, set[int]](set)
    last_kind = None
    for number, line in enumerate(lines_behind(file, 0), 1):
        if number > min(last, _MOST):
            break
        kind = _kind(line)
        if kind is not None and (step := bisect_left(steps, number)) < len(steps):
            before[kind].add(step)
        last_kind = kind if number == last else last_kind
    return last_kind in kinds and all(len(before[kind]) >= _STEPS for kind in kinds if kind)


def _kind(line: str) -> str | None:
    """Whose exception it is and how its message begins; None: the line is no worker's exception."""
    found = _RAISED.match(line)
    return None if found is None else _DIGITS.sub("0", f"{found['worker']} {found['words']}")
