"""Starts that failed alike: the last two of a file ended of the same failure, and neither made a step. Pure.

The second was the first one made again, and that helped nothing. So a third one waits for a person.
What a scheduler takes away says nothing of the start itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from midwatch.agents.replay.replayed import EarlierStart, Replayed
from midwatch.streams.lines.forms import form_of
from midwatch.streams.records import Verdict

_TAKEN_AWAY = ("preemption", "cancelled", "slurm_failure")


def held_where_alike(replayed: Replayed, earlier: Sequence[EarlierStart]) -> Replayed:
    """The replay, with a restart held where the start before it had failed alike. `earlier` is in order."""
    if replayed.decision.action != "restart" or not earlier or replayed.steps is not None:
        return replayed
    before = earlier[-1]
    if replayed.verdict.error_type in _TAKEN_AWAY or not _alike(before.verdict, replayed.verdict):
        return replayed
    reason = (
        f"the start before ended of the same failure ({before.path}:{before.verdict.root_line_number}), and "
        "neither made a step: another start would hardly differ"
    )
    return replace(replayed, decision=replace(replayed.decision, action="hold", reason=reason))


def _alike(before: Verdict, last: Verdict) -> bool:
    stepped = before.step is not None or last.step is not None
    same = before.rule == last.rule and _form(before) == _form(last)
    return same and not stepped and before.state == last.state == "failed"


def _form(verdict: Verdict) -> bytes:
    return form_of(verdict.root_line.encode("utf-8", "surrogateescape"))
