"""Same start: an attempt that a command or the scheduler began as the one before, which may have made steps.

A start that had made steps is known to work: its addresses, rights and options are right. Where a person
began the attempt, something may have been changed, and only its own steps prove anything.
"""

from __future__ import annotations

from midwatch.agents.detect.incident.state import JobState
from midwatch.streams.records.identity import native_id

_COMMAND = "command:"


def worked_before(state: JobState) -> bool:
    """Whether the present attempt repeats a start that made a step in an earlier attempt."""
    return state.resumption.worked_before and _repeats(state)


def is_known_to_work(state: JobState) -> bool:
    """Whether the present attempt made a step, or repeats a start that did."""
    return state.trained or state.step is not None or worked_before(state)


def of_one_job(incarnation: str, other: str) -> bool:
    """Whether the scheduler gave both starts one id."""
    same_scheduler = incarnation.partition(":")[0] == other.partition(":")[0]
    return same_scheduler and native_id(incarnation) == native_id(other)


def _repeats(state: JobState) -> bool:
    if state.started_by.get(state.incarnation, "").startswith(_COMMAND):
        return True
    before = (name for name, number in state.incarnations.items() if number == state.attempt - 1)
    return any(of_one_job(name, state.incarnation) for name in before)
