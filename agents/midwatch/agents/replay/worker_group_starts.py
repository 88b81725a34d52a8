"""Worker groups: where an agent of torchrun starts its workers anew in the same file. Pure.

Each restart is told by the agent itself, so no line need repeat and no step need come again. The workers that
the agent stops write on until it starts the next ones: a start begins with these words alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

PIECES = (b"; will restart worker group", b"Starting worker group", b"restart_count=")
"""One of these stands in each line that tells of a restart."""

_AGAIN = re.compile(
    rb"\] (?:Worker group [A-Z]+\. \d+/\d+ attempts left|Detected \d+ new nodes from group_rank=\d+)"
    rb"; will restart worker group\s*\Z"
)
_COUNTED = re.compile(rb"\A(?:\W*\d+: |\[[\w-]+\]:?)?\s+restart_count=(\d{1,9})\s*\Z")
_STARTS = re.compile(rb"\] Starting worker group\s*\Z")
_COMPARED = 512


def behind_restarts(lines: Iterable[tuple[int, int, bytes]]) -> Iterator[tuple[int, int]]:
    """Where workers are started anew, as (offset, number), of lines with their offset and number.

    The agent of each node says so. The first one of a restart counts.
    """
    again, restarts = False, 0
    for offset, number, line in lines:
        head = line[:_COMPARED]
        if again and _STARTS.search(head):
            again = False
            yield offset, number
        elif (counted := _COUNTED.search(head)) is not None:
            again = again or int(counted[1]) > restarts
            restarts = max(restarts, int(counted[1]))
        else:
            again = again or _AGAIN.search(head) is not None
