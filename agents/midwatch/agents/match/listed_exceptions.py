"""Listed exceptions: a docstring lists what a function may raise, a table how often each was met. Pure.

Help that is printed, or a count of earlier failures, reports none.
"""

from __future__ import annotations

import re
from itertools import islice

from midwatch.agents.match.lines_above import lines_above

_RAISES = b"Raises:"
_ENTRIES = 40  # lines between the heading and the last exception
_DEEPEST = 80  # bytes of a line in which its indent is looked for
_COUNTED = re.compile(rb"\S {4,}\d+\s*\Z")
_BELOW = 4096  # bytes in which pandas names the column and its type
_TYPE = re.compile(rb"\n(?:Name: [^\n]{1,80}, (?:Length: \d+, )?)?dtype: u?int\d+\b")


def is_listed(text: bytes, start: int, end: int) -> bool:
    """Whether the line of a chunk is an entry of such a docstring, or a row of such a table."""
    return _is_documented(text, start) or _is_counted(text, start, end)


def _is_documented(text: bytes, start: int) -> bool:
    """Whether the line is indented, and the nearest one above that is less so heads the list."""
    if text[start : start + 1] not in (b" ", b"\t"):
        return False
    indent = _indent(text[start : start + _DEEPEST])
    for _, line in islice(lines_above(text, start, b""), _ENTRIES):
        if line.strip() and _indent(line) < indent:
            return line.strip() == _RAISES
    return False


def _is_counted(text: bytes, start: int, end: int) -> bool:
    """Whether pandas counted it, as `Series.value_counts` does."""
    counted = _COUNTED.search(text, start, end) is not None
    return counted and _TYPE.search(text, end, end + _BELOW) is not None


def _indent(line: bytes) -> int:
    return len(line) - len(line.lstrip(b" \t"))
