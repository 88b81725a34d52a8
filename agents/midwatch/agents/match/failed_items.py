"""Failed items: a loop numbers its items, `[7/70]`, says what one of them met, and takes the next one. Pure.

An item behind it that met nothing, of the next round too, shows that the loop had caught the failure. Where
all that follow fail, too, the failure is no item's own. Numbers that do not rise by one from line to line are
ranks' or of a bar.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from midwatch.streams.lines.launcher_prefix import front

_ITEM = re.compile(rb"\s*[\[(](?P<number>\d{1,7})/(?P<total>\d{1,7})[\])][ :]")
_MET = re.compile(rb"(?i)error|fail|exception|\bkilled|out of memory|\babort|\xe2\x9d\x8c")
_RANKS = 8
"""So few items may be the ranks of a node."""
_HEADER = b"Traceback (most recent call last)"
_READ = 64  # lines behind the item
_OFTEN = 3
"""Items that failed, and that the loop got over."""
_BLOCK = 16 * 1024


def is_of_a_failed_item(text: bytes, start: int, end: int) -> bool:
    """Whether the line says what an item met, and the loop then took others, one of which met nothing.

    Where `text` ends before that, whether the loop did so several times above.
    """
    own = _item(text[start:end])
    if own is None:
        return False
    number, total = own
    if total <= _RANKS:
        return False
    behind = text[end + 1 : end + 1 + _BLOCK].split(b"\n")
    took = _took_another(behind, number, total)
    if took is not None or len(behind) > _READ or any(_HEADER in line for line in behind):
        return took is True
    return _got_over_before(text[max(start - _BLOCK, 0) : start], total)


def _took_another(lines: Sequence[bytes], number: int, total: int) -> bool | None:
    """Whether the loop took items behind that one until one met nothing. None: the lines end before that."""
    for line in lines[:_READ]:
        following = _item(line)
        if following is None or following[1] != total:
            continue
        if following[0] != number % total + 1:
            return False
        number = following[0]
        if _MET.search(line) is None:
            return True
    return None


def _got_over_before(above: bytes, total: int) -> bool:
    """Whether the loop got over what items above had met, some times. A chunk may end behind the line."""
    lines = above.split(b"\n")
    met = [
        _took_another(lines[at + 1 : at + 1 + _READ], own[0], total)
        for at, line in enumerate(lines)
        if _MET.search(line) and (own := _item(line)) and own[1] == total
    ]
    return met.count(True) >= _OFTEN


def _item(line: bytes) -> tuple[int, int] | None:
    found = _ITEM.match(line, front(line))
    return (int(found["number"]), int(found["total"])) if found else None
