"""The closing table: the last rows of a table in a saved log have a loss that is no number. Pure.

Trainers such as fastai, skorch or Turi Create name their columns once, in a header, and then print
rows of numbers. No line by itself says which of its numbers is the loss.
"""

from __future__ import annotations

import re

from midwatch.agents.replay.endings.cut_tracebacks import Numbered
from midwatch.streams.lines.launcher_prefix import front

BROKEN_TABLE = "the log ends in rows of a table whose loss is no number"

_LEAST_BROKEN = 3
"""Rows: a loss may miss one number and come back."""
_NUMBER = re.compile(
    rb"(?i)[-+]?(?:\d[\d,]*(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?%?|\d+(?::\d\d)+(?:\.\d+)?|\d+/\d+|nan|[-+]?inf"
)
_NOT_FINITE = re.compile(rb"(?i)nan|[-+]?inf")
_DRAWN = re.compile(rb"[-+=|\s]*\Z")
_LOSS = re.compile(rb"(?i)(?:\A|[\s_./-])loss\b")
_OF_OTHER_DATA = re.compile(rb"(?i)\b(?:val|valid|validation|test|eval)(?:[\s_./-]|\Z)")
"""Without data of that kind its loss is no number in a run that does well."""
_COLUMNS = (re.compile(rb"\s{2,}|\t"), re.compile(rb"\s+"))


def broken_table(lines: Numbered) -> int | None:
    """The number of the first of the last rows whose loss is no number; None if the lines end otherwise."""
    rows, header = _last_table(lines)
    if len(rows) < _LEAST_BROKEN or header is None:
        return None
    width = len(rows[0][1])
    for column, name in enumerate(_names(header, width)):
        if _LOSS.search(name) is None or _OF_OTHER_DATA.search(name) is not None:
            continue
        first = len(rows)
        while first and _NOT_FINITE.fullmatch(rows[first - 1][1][column]):
            first -= 1
        if len(rows) - first >= _LEAST_BROKEN:
            return rows[first][0]
    return None


def _last_table(lines: Numbered) -> tuple[list[tuple[int, list[bytes]]], bytes | None]:
    """The rows in which the lines end, from the top, and the line above them."""
    rows: list[tuple[int, list[bytes]]] = []
    for number, line in reversed(lines):
        words = line[front(line) :]
        if _DRAWN.match(words):
            continue
        cells = _cells(words)
        if any(_NUMBER.fullmatch(cell) is None for cell in cells) or len(cells) < 2:
            return rows[::-1], words
        if rows and len(cells) != len(rows[0][1]):
            return rows[::-1], None
        rows.append((number, cells))
    return rows[::-1], None


def _cells(words: bytes) -> list[bytes]:
    """The cells of a row. No number holds a blank."""
    return words.replace(b"|", b" ").split()


def _names(header: bytes, width: int) -> list[bytes]:
    """The names of so many columns, which may be of several words; none if there are not so many."""
    if b"|" in header:
        tries = [header.strip().strip(b"|").split(b"|")]
    else:
        tries = [columns.split(header.strip()) for columns in _COLUMNS]
    return next(([name.strip() for name in names] for names in tries if len(names) == width), [])
