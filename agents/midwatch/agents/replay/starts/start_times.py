"""Start times: whether what stands behind repeated first lines was begun later, by the times it prints."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import islice

from midwatch.agents.replay.reading.log_files import LogFile, lines_behind

COMPARED = 512
"""Bytes of a line that are looked at."""

_DATED = re.compile(rb"\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d")
_EXACT = re.compile(rb"\d\d:\d\d:\d\d[.,]\d{2}|\b\d{10}\.\d{2}")
_APART = timedelta(minutes=1)  # ranks of one start print their first lines within a minute


def apart(first: bytes, later: bytes) -> bool:
    """Whether a line prints a date and time that is a minute or more behind that of the first line."""
    times = [_DATED.search(each) for each in (first[:COMPARED], later)]
    try:
        begun, now = (_moment(found[0]) for found in times if found is not None)
    except ValueError:
        return False
    return now - begun >= _APART


def same_moment(pairs: Sequence[tuple[bytes, bytes]]) -> bool:
    """Whether lines with a time to a part of a second are the first ones to their last sign.

    A buffer that two processes share is printed twice, so that begins nothing. `pairs`: each first line and
    the later one that is like it.
    """
    exact = [pair for pair in pairs if _EXACT.search(pair[1])]
    return bool(exact) and all(first[:COMPARED].strip() == later.strip() for first, later in exact)


def begun_later(file: LogFile, before: int, after: int, lines: int) -> bool:
    """Whether the first time that stands from one line on is a minute or more behind that from another on.

    `before`, `after`: numbers of those lines. The times stand among as many `lines`. Raises OSError.
    """
    begun, now = (_first_dated(file, number, lines) for number in (before, after))
    return apart(begun, now)


def _first_dated(file: LogFile, number: int, lines: int) -> bytes:
    first = islice(lines_behind(file, number - 1), lines)
    return next((line for each in first if _DATED.search(line := each[:COMPARED].encode())), b"")


def _moment(dated: bytes) -> datetime:
    return datetime.fromisoformat(dated.decode().replace("/", "-"))
