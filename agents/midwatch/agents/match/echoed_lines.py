"""Lines that Ray prints for others like them. Pure.

Ray prints the first of them at once and in full. A log that somebody cut may hold only the echo.
"""

from __future__ import annotations

import re

from midwatch.streams.records import Section

_WORDS = re.compile(rb"[^\d\n]{16,}")


def stands_alone(section: Section, text: bytes, start: int, end: int) -> bool:
    """Whether the line that an echo repeats is missing, in a section that begins with its file's first line.

    In any other section it may stand in an earlier one. `text` is the section's, `start` to `end` the echo.
    """
    if section.anchors[0].offset or section.context:
        return False
    told = text.rfind(b"[repeated ", start, end)
    words = max(_WORDS.findall(text, start, told), key=len, default=b"").strip()
    return bool(words) and text.find(words, 0, start) < 0
