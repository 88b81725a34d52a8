"""Polled servers: a script asks a server that it started itself until that one is up. Pure.

curl says so each time that nobody listens yet. What the script prints behind it shows that it went on.
"""

from __future__ import annotations

import re

_ASKED = re.compile(rb"\s*curl: \(7\) [^\n]*?\b(?:localhost|127(?:\.\d+){3})\b[^\n]*")
_ASKS = re.compile(
    rb"(?i)\s*(?:curl: |\Z)|[^\n]*\b(?:wait|sleep|retry|attempt \d|refused|not ready|fail|error)"
)
_BEHIND = 4096


def is_a_poll(text: bytes, start: int, end: int) -> bool:
    """Whether curl asked the machine itself in vain, and the script goes on behind it with other words."""
    if _ASKED.match(text, start, end) is None:
        return False
    return any(_ASKS.match(line) is None for line in text[end + 1 : end + 1 + _BEHIND].split(b"\n")[:-1])
