"""Printed forms: what differs between lines that one statement of a program prints. Pure."""

from __future__ import annotations

import re

from midwatch.streams.lines.launcher_prefix import front

CLOCK = (
    r"\d{1,4}[-/.](?:\d\d|[A-Z][a-z]{2})[-/.]\d{2,4}(?:[T :]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?"
    r"|\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?"
)
NUMBER = r"(?<![\d.])[-+]?(?:\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|(?<![A-Za-z])(?i:nan|inf)(?![A-Za-z]))"
LEVEL = r"\b(?:DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL|FATAL|SUCCESS)\b"

_CLOCK, _NUMBER, _LEVEL = re.compile(CLOCK), re.compile(NUMBER), re.compile(LEVEL)
_BLANKS = re.compile(r"\s+")


def own_part(line: str) -> str:
    """The last state of the line, without what a launcher prints in front of it. Its indentation stays."""
    whole = line.rpartition("\r")[2].encode()
    return whole[front(whole) :].decode("utf-8", "replace")


def without_clock(line: str) -> str:
    """The own part of the line without its clocks, and with one word for all levels."""
    return _LEVEL.sub("L", _CLOCK.sub("", own_part(line)))


def numbers_in(line: str) -> tuple[str, ...]:
    """The numbers that stand in a line `without_clock`."""
    return tuple(_NUMBER.findall(line))


def form_of_print(line: str) -> str:
    """What lines of one statement share: the line without clocks, numbers and blanks."""
    return _BLANKS.sub("", _NUMBER.sub("0", without_clock(line)))
