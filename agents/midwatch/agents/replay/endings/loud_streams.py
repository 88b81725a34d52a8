"""A wrapper that calls all of its program's standard error an error, bars and warnings too. Pure.

Where one of the last lines shows that, the level of the others tells nothing, and only their own words count.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

STAMPED = re.compile(
    rb"\A(?:[^a-z]|[A-Z][a-z]{2}\b){0,48}(?:[\w.-]+ ?[:|-] ?)?\[?\b(?:ERROR|CRITICAL|FATAL)\b"
)
"""Behind a clock, numbers or a name, the level that a logger prints; or the first word of the line itself."""
_COPIED = re.compile(
    STAMPED.pattern + rb"(?:[^a-z=]{1,60}?\b(?:INFO|DEBUG|NOTICE|WARNING)\b"
    rb"|.{1,80}?(?:\d{1,3}%\||\bwarnings\.warn\(|\.py:\d+: \w*Warning: |:::MLLOG \{"
    rb"|[:\s\])][IW]\d{4} \d\d:|\[NeMo [IW] ))"
)
_OWN_WORDS = re.compile(
    STAMPED.pattern + rb"[\s:|\]-]+(?:(?:\w+\.)*[A-Z]\w*(?:Error|Exception)\b|(?i:fatal|error|failed)\b"
    rb"|.*\b(?:ERROR|FATAL)\b)"
)
_Line = tuple[int, bytes]


def own_errors(last: Sequence[_Line], above: bytes) -> Sequence[_Line]:
    """Those of the last lines that tell of an error, the very last one first.

    `last`: lines at such a level, from the end. `above`: the line above them, maybe at that level, too.
    """
    if not any(_COPIED.match(line) for line in (above, *(line for _, line in last))):
        return last
    return list(takewhile(lambda each: _OWN_WORDS.match(each[1]), last))
