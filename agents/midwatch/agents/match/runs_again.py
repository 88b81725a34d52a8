"""HTCondor's event log holds all processes of a cluster, and says which of them it ran once more. Pure.

A chunk may hold hundreds of such events, and only a few of a rule leave match in full. So the loss and the
event that undoes it are joined here where both are in one chunk, and by detect where they are not.
"""

from __future__ import annotations

import re

from midwatch.rules.matching.hits import Match

_LOST_ITS_SLOT = re.compile(rb"(?:004|007|012|022|024) (\([\d.]+\)) ")
"""Evicted, its shadow failed, held, disconnected, its machine is lost."""
_EXECUTES, _CAME_BACK = b"\n001 ", b"\n023 "


def runs_again(text: bytes, hit: Match) -> bool:
    """Whether the line tells that a job lost its slot, and a later event that the same job executes."""
    lost = _LOST_ITS_SLOT.match(text, hit.start, hit.end)
    if lost is None:
        return False
    return any(text.find(event + lost[1], hit.end) >= 0 for event in (_EXECUTES, _CAME_BACK))
