"""Other ends: two lines of losses that count to different numbers of steps or batches. Pure.

They are of two loops: of another run, or of the evaluation behind a training. Keras draws one bar for both.
"""

from __future__ import annotations

import re

from midwatch.agents.replay.reading.log_files import LogFile, line_of

_ANOTHER_END = 2
"""Two runs count to numbers of steps of which one is so many times the other."""
_OF_ALL = re.compile(r"\d ?/ ?(\d{3,})\b(?!/)")
"""The number of all steps, behind the one that is reached. The day of a month is shorter."""
_OF_A_BAR = re.compile(r"\A\s*\d+/(\d+) (?:\S+ ){0,3}- ")
"""The batches of an epoch, in front of what Keras draws. They are the same in each epoch."""


def count_to_other_ends(file: LogFile, before: int, number: int) -> bool:
    """Whether the line in front of a spike counts to quite another number than that line. Raises OSError.

    `before`: the number of the line in front; 0 without one.
    """
    if not before:
        return False
    lines = [line_of(file, each) for each in (before, number)]
    bars = [bar[1] for line in lines if (bar := _OF_A_BAR.match(line))]
    if len(bars) == len(lines):
        return bars[0] != bars[1]
    ends = [_OF_ALL.findall(line) for line in lines]
    if not all(ends):
        return False
    low, high = sorted(max(map(int, each)) for each in ends)
    return _ANOTHER_END * low <= high
