"""Starts that failed alike: the last two of a file ended of the same failure, and neither made a step. Pure.

The second was the first one made again, and that helped nothing. So a third one waits for a person.
What a scheduler takes away says nothing of the start itself. Where ranks wait for each other in the very
collective in which an earlier start ended, they will do so again, whatever steps were made.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from midwatch.agents.replay.replayed import EarlierStart, Replayed
from midwatch.streams.lines.forms import form_of
from midwatch.streams.records import Verdict

_COLLECTIVE = re.compile(r"\bSeqNum=\d+, OpType=\w+, NumelIn=\d+")
"""torch's number of a collective since its start, what it does, and how much of the data it moves."""
_TAKEN_AWAY = ("preemption", "cancelled", "slurm_failure")


def held_where_alike(replayed: Replayed, earlier: Sequence[EarlierStart]) -> Replayed:
    """The replay, with a restart held where the start before it had failed alike. `earlier` is in order."""
    if replayed.decision.action != "restart" or not earlier:
        return replayed
    if same := next((each for each in earlier if _in_one_collective(each.verdict, replayed.verdict)), None):
        return _held(replayed, f"an earlier start ended in the same collective ({_place(same)})")
    before, taken = earlier[-1], replayed.verdict.error_type in _TAKEN_AWAY
    if taken or replayed.steps is not None or not _alike(before.verdict, replayed.verdict):
        return replayed
    told = f"the start before ended of the same failure ({_place(before)}), and neither made a step"
    return _held(replayed, told)


def _held(replayed: Replayed, told: str) -> Replayed:
    decision = replace(replayed.decision, action="hold", reason=f"{told}: another start would hardly differ")
    return replace(replayed, decision=decision)


def _place(start: EarlierStart) -> str:
    return f"{start.path}:{start.verdict.root_line_number}"


def _in_one_collective(before: Verdict, last: Verdict) -> bool:
    """Whether the watchdog names the same collective in both root lines."""
    own = _COLLECTIVE.search(last.root_line)
    other = _COLLECTIVE.search(before.root_line)
    return own is not None and other is not None and own[0] == other[0]


def _alike(before: Verdict, last: Verdict) -> bool:
    stepped = before.step is not None or last.step is not None
    same = before.rule == last.rule and _form(before) == _form(last)
    return same and not stepped and before.state == last.state == "failed"


def _form(verdict: Verdict) -> bytes:
    return form_of(verdict.root_line.encode("utf-8", "surrogateescape"))
