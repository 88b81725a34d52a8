"""Item errors: a program names in each error the item that met it, and goes on with the next one. Pure.

Such an error as the last line of a log says no more than the earlier ones do. Errors of ranks, of tries
and of steps are no such errors: the last of these may have ended the program.
"""

from __future__ import annotations

import re
from itertools import pairwise

from midwatch.agents.replay.endings.cut_tracebacks import Numbered
from midwatch.streams.lines.launcher_prefix import front

_LEAST = 6
"""Errors with rising numbers, and other lines among them."""
_ITEM = re.compile(rb"\A(?P<words>\D{8,80}?)(?P<number>\d{1,9})(?!\d)")
_NO_ITEM = re.compile(
    rb"(?i)\b(?:rank|gpu|device|node|host|worker|process|proc|pid|thread|core|port|code|status|errno|line"
    rb"|attempts?|tr(?:y|ies)|retry|retries|step|epoch|iter(?:ation)?|batch|round|version|after|in|for)\W*\Z"
)


def last_is_of_an_item(lines: Numbered) -> bool:
    """Whether the last line names an item, as several above it do, with other lines among them."""
    last = lines[-1][1]
    said = _ITEM.match(last[front(last) :])
    if said is None or _NO_ITEM.search(said["words"]) is not None:
        return False
    alike = [
        (number, int(found["number"]))
        for number, line in lines
        if (found := _ITEM.match(line[front(line) :])) and found["words"] == said["words"]
    ]
    rising = all(one < other for (_, one), (_, other) in pairwise(alike))
    among = alike[-1][0] - alike[0][0] + 1 - len(alike)
    return rising and len(alike) > _LEAST and among >= _LEAST
