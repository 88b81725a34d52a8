"""Lists below a message: an exception that ends in a colon and lists what it found. Pure.

Another exception below such a message would be what it announces. A list is the rest of the message.
"""

from __future__ import annotations

import re

from midwatch.streams.lines.launcher_prefix import front

_ENTRY = re.compile(rb"(?:\s*(?:[-*+] |\xe2\x80\xa2 ?|\d{1,3}[.)] |['\"(\[{])\s*|[ \t]+[a-z]\w*: )\S")
"""An entry of a list, or an indented field."""
_LONGEST = 400  # bytes of the next line that are looked at


def lists(text: bytes, start: int, end: int) -> bool:
    """Whether the line from `start` to `end` ends in a colon, with an entry of a list right below it."""
    if not text[start:end].rstrip().endswith(b":"):
        return False
    below = text[end + 1 : end + 1 + _LONGEST].partition(b"\n")[0]
    return _ENTRY.match(below[front(below) :]) is not None
