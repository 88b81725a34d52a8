"""PowerShell's folds: it writes what a program sends to its standard error as wide as its window. Pure.

A line that is folded at a blank keeps the blank at its end. Words that are cut in two cannot be told from
others, so they stay.
"""

from __future__ import annotations

from collections.abc import Sequence

_RECORD = b"NativeCommandError"
"""PowerShell names its record of the first such line so."""


def unfolded(lines: Sequence[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """The numbered lines of a file, each with the rest that was folded below it. Others stay as they are."""
    if not any(_RECORD in line for _, line in lines):
        return list(lines)
    # The reader puts a blank in place of each return, so that no byte moves.
    returns = all(line.endswith(b" ") for _, line in lines[:-1])
    blank = b" " if returns else b""
    whole, open_ = list[tuple[int, bytes]](), False
    for number, line in ((each, line.removesuffix(blank)) for each, line in lines):
        if open_ and line.strip():
            first, begun = whole.pop()
            whole.append((first, begun + line))
        else:
            whole.append((number, line))
        open_ = line.endswith(b" ") and line.strip() != b"" and not line.startswith(b" ")
    return whole
