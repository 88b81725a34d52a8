"""Error stacks that a C library prints by itself: one numbered entry for each call, the innermost last. Pure.

The outer entries only pass on that something below them failed; the innermost says what.
"""

from __future__ import annotations

import re

_ENTRY = re.compile(rb"#(\d{3}): \S+ line \d+ in \w+\(\): ")
_FURTHER_BYTES = 8192
_FURTHER = 12  # lines in which the next entry follows; each has lines of its own, and others write between


def is_outer(text: bytes, start: int, end: int) -> bool:
    """Whether the line from `start` to `end` is an entry of a stack that goes deeper below it."""
    entry = _ENTRY.search(text, start, end)
    if entry is None:
        return False
    deeper = b"#%03d: " % (int(entry[1]) + 1)
    writer = text[start : entry.start()]
    for line in text[end + 1 : end + 1 + _FURTHER_BYTES].split(b"\n")[:_FURTHER]:
        found = _ENTRY.search(line)
        if found is not None and line[: found.start()] == writer:
            return found[0].startswith(deeper)
    return False
