"""The closing table: the last rows of a table in a saved log have a loss that is no number. Pure.

Trainers such as fastai, skorch or Turi Create name their columns once, in a header, and then print
rows of numbers. No line by itself says which of its numbers is the loss. Where all that a row counts or
measures but its own number is none for good, the loss is among it. Fortran prints such a number as stars.
"""

from __future__ import annotations

import re
from itertools import pairwise, takewhile

from midwatch.agents.replay.endings.cut_tracebacks import Numbered
from midwatch.streams.lines.launcher_prefix import front

BROKEN_TABLE = "the log ends in rows of a table whose loss is no number"

VANISHED = "the last rows of the log's table hold no number any more"

_LEAST_BROKEN = 3
"""Rows: a loss may miss one number and come back."""
_NUMBER = re.compile(
    rb"(?i)[-+]?(?:\d[\d,]*(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?%?|\d+(?::\d\d)+(?:\.\d+)?|\d+/\d+|nan|[-+]?inf"
    rb"|\*{4,}"
)
_NOT_FINITE = re.compile(rb"(?i)nan|[-+]?inf|\*{4,}")
_LEAST_GONE, _LEAST_ABOVE = 10, 3
"""Rows of a counted table without a number, up to its end, and rows with numbers above them."""
_MOST_BEHIND = 8  # lines behind the table: what the program says when it has come to its end
_COUNTED = re.compile(rb"(?i)\s*(\d+)[:,.]?\s+(nan|[-+]?inf|-?\d+\.\d+(?:e[-+]?\d+)?)[\s*=#_-]*\Z")
"""A count and one measure, as a loop prints them that names neither."""
_DRAWN = re.compile(rb"[-+=|\s]*\Z")
_LOSS = re.compile(rb"(?i)(?:\A|[\s_./-])loss\b")
_OF_OTHER_DATA = re.compile(rb"(?i)\b(?:val|valid|validation|test|eval)(?:[\s_./-]|\Z)")
"""Without data of that kind its loss is no number in a run that does well."""
_COUNTS_STEPS = re.compile(rb"(?i)[\W_]*(?:iter|step|epoch|batch|round|update|gen|ep\b|it\b)")
"""The name of the first column. Another table may count classes, of which some have no sample."""
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


def vanished_numbers(lines: Numbered) -> int | None:
    """The number of the first of the last rows that hold nothing finite but their count; None without any."""
    for end in range(len(lines), max(len(lines) - _MOST_BEHIND - 1, 0), -1):
        rows, header = _last_table(lines[:end])
        if len(rows) < _LEAST_GONE + _LEAST_ABOVE:
            continue
        if header is None or _COUNTS_STEPS.match(header) is None:
            return None
        gone = list(takewhile(lambda row: all(map(_NOT_FINITE.fullmatch, row[1][1:])), reversed(rows)))
        above = rows[: len(rows) - len(gone)]
        whole = [row for row in above if not any(map(_NOT_FINITE.fullmatch, row[1]))]
        counts = [row[1][0] for row in rows]
        counted = all(count.isdigit() for count in counts) and counts == sorted(counts, key=int)
        return gone[-1][0] if counted and len(gone) >= _LEAST_GONE and len(whole) >= _LEAST_ABOVE else None
    return None


def vanished_measures(lines: Numbered) -> int | None:
    """The number of the first of the last counted lines whose only measure is no number; None without any.

    Something else stands between these lines: a loop's own words. A list of classes has nothing there.
    """
    rows = [
        (at, number, int(row[1]), _NOT_FINITE.fullmatch(row[2]) is None)
        for at, (number, line) in enumerate(lines)
        if (row := _COUNTED.match(line[front(line) :]))
    ]
    gone = list(takewhile(lambda row: not row[3], reversed(rows)))
    whole = [row for row in rows if row[3]]
    rises = all(low[2] < high[2] and high[0] - low[0] > 1 for low, high in pairwise(rows))
    if (
        not rises
        or len(gone) < _LEAST_GONE
        or len(whole) < _LEAST_ABOVE
        or len(gone) + len(whole) < len(rows)
    ):
        return None
    return gone[-1][1] if len(lines) - 1 - gone[0][0] <= _MOST_BEHIND else None


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
