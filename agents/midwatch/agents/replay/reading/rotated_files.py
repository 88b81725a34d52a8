"""Rotated files: one log in several files, whose names tell their order.

`train.log.2.gz` was written before `train.log.1`, and that before `train.log`. Ranks may number their files
alike, and they run at once. So a number tells nothing where no file is without one, or where files begin with
the same lines. Nor does it where there are as many plain files as a node has cards.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from midwatch.agents.detect.line_order import AT_ANY_TIME
from midwatch.agents.replay.reading.log_files import LogFile

_ROTATED = re.compile(r"\A(?P<log>.*[^./])\.(?P<age>\d{1,4})(?P<packed>\.(?:gz|bz2|zst))?\Z", re.DOTALL)
_APART = 1e-3
"""Seconds that part the files of one log, if their last writes do not tell their order."""
_FIRST_LINES = 3
_OF_A_NODE = 4  # a node's ranks are so many, or a multiple


def in_rotation(files: Sequence[LogFile], times: Sequence[float]) -> list[float]:
    """The times of the files' first lines, an older file of one log before the younger ones.

    A time that is in that order stays. Raises OSError.
    """
    ordered = list(times)
    for log in _logs(files):
        following = AT_ANY_TIME
        for index in log:
            following = ordered[index] = min(ordered[index], following - _APART)
    return ordered


def _logs(files: Sequence[LogFile]) -> Iterator[list[int]]:
    """The places of each log's files, the youngest file first."""
    known = {file.path: index for index, file in enumerate(files)}
    older: dict[str, dict[int, int]] = defaultdict(dict)
    packed = set[str]()
    for path, index in known.items():
        match = _ROTATED.match(path)
        if match is not None and match["log"] in known:
            older[match["log"]][int(match["age"])] = index
            packed |= {match["log"]} if match["packed"] else set()
    for log, by_age in older.items():
        places = [known[log], *(by_age[age] for age in sorted(by_age))]
        counted = sorted(by_age) == list(range(1, len(places)))
        if counted and (log in packed or (len(places) % _OF_A_NODE and _begin_apart(files, places))):
            yield places


def _begin_apart(files: Sequence[LogFile], places: Sequence[int]) -> bool:
    """Whether no two of the files have one of their first lines in common."""
    heads = [
        {line.strip() for line in files[at].head().split(b"\n", _FIRST_LINES)[:_FIRST_LINES]} for at in places
    ]
    firsts = [head - {b""} for head in heads]
    return sum(map(len, firsts)) == len(set[bytes]().union(*firsts))
