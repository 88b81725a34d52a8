"""First rows: rows of three lines by which the first lines of a start are known again. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from midwatch.agents.replay.starts.start_words import LETTERS, letters

ROW = 3
_BANNER = 4  # lines of torchrun's on the threads of each process
# A crash prints its stack, and prints it again with the exception that nobody caught.
_OF_A_STACK = re.compile(
    rb"(?:C\+\+ )?(?:Exception raised from |Traceback \(|[Ff]rame #\d|#\d+ |terminate called )"
)


def first_rows(head: Sequence[tuple[bytes, bytes]]) -> dict[tuple[bytes, ...], int]:
    """The rows of these lines, each with the place of its first line. `head`: the lines, and their words.

    An indented line is of a traceback or a table: each rank of one start may print the same one. What stands
    again right below is printed by each of several launchers of one start. Neither makes a row.
    """
    rows, side_by_side = dict[tuple[bytes, ...], int](), set[tuple[bytes, ...]]()
    for index in range(len(head) - ROW + 1):
        lines = head[index : index + ROW]
        row = tuple(words for _, words in lines)
        apart = any(line[:1].isspace() or _OF_A_STACK.match(line) for line, _ in lines)
        if apart or len(set(row)) < ROW or letters(row) < LETTERS:
            continue
        if 0 < index - rows.setdefault(row, index) <= _BANNER:
            side_by_side.add(row)
    return {row: index for row, index in rows.items() if row not in side_by_side}
