"""Error stacks of a C library: one numbered entry for each call, the innermost last. Pure.

An outer entry says only that an inner call failed. The innermost entry says what failed.
"""

from __future__ import annotations

import re

_ENTRY = re.compile(rb"#(\d{3}): \S+ line \d+ in \w+\(\): ")
_FURTHER_BYTES = 8192
_FURTHER = 12  # lines within which the next entry follows; others may write between


def is_outer(text: bytes, start: int, end: int) -> bool:
    """Whether the line from `start` to `end` is an entry with a deeper entry of its stack below."""
    if text.find(b"(): ", start, end) < 0:
        return False
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
