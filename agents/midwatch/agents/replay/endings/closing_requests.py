"""The closing request: somebody asked the run to end, and the saved log ends with it. Pure.

Lightning prints the same line where its data workers are ended, in the middle of a run that does well. So it
counts only at the very end. A rank may finish the batch that it had begun. A launcher that passed the signal
on shows that the run itself was asked.
"""

from __future__ import annotations

import re

from midwatch.agents.replay.endings.cut_tracebacks import Numbered

ASKED = "the log ends with a request to end, and no line says who asked"

_LAST = 64
"""Lines that the ranks of a node print of one request."""
_MOST_BATCHES = 3
_RECEIVED = re.compile(rb"\[rank: \d+\] Received SIG(?:TERM|INT|HUP): \d+\s*\Z")
_PASSED_ON = re.compile(rb"\s*pid \d+ killing \d+ with \d+\s*\Z")
_BAR = re.compile(rb"\| *(\d+)/(\d+) \[")


def asked_to_end(lines: Numbered) -> int | None:
    """The number of the first line of the request in which the lines end; None if they end otherwise."""
    first, behind, passed_on = None, None, False
    for number, line in reversed(lines[-_LAST:]):
        bar = _BAR.search(line)
        if _RECEIVED.search(line):
            first = number
            if bar is not None:
                return number if _goes_on_for(bar, behind) <= _MOST_BATCHES else None
        elif bar is not None and first is None and behind is None:
            behind = bar
        elif _PASSED_ON.match(line):
            passed_on = True
        else:
            break
    return first if behind is None or passed_on else None


def _goes_on_for(asked: re.Match[bytes], behind: re.Match[bytes] | None) -> int:
    """How many batches the bar behind the request is ahead of the one in front of it."""
    return 0 if behind is None else abs(int(behind[1]) - int(asked[1]))
