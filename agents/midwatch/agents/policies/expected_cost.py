"""Restart where waiting for a person is expected to cost more than a start in vain."""

from __future__ import annotations

from msgspec import UNSET

from midwatch.agents.policies import verdict as by_verdict
from midwatch.agents.policies.base import Clause, PolicyChoice
from midwatch.agents.policies.conditions import Past
from midwatch.streams.records import Incident
from midwatch.streams.records.error_types import named_in

_BY_A_PERSON = ("user_interrupt",)
_HOUR = 3600
_ENOUGH = 5
"""A chance that rests on fewer ends is a guess, and restarts nothing."""


def judge(clause: Clause, incident: Incident, past: Past) -> PolicyChoice:
    """Compares chance x cost of waiting with (1 - chance) x cost of a wasted start.

    Each restart of the job that got no further halves the chance. After a failure that a rule calls
    permanent, waiting must cost `margin` times as much. A start costs at least what the job's own start took.
    A verdict without a chance, or on a person's interrupt, is judged as by the kind `verdict`. Where the
    claim is unknown and too few ends tell of this one, the job is held for a person.
    """
    verdict, costs = incident.verdict, clause.costs
    excluded = named_in(verdict.error_type, clause.exclude_error_types)
    if not verdict.chance or excluded or verdict.error_type in _BY_A_PERSON:
        return by_verdict.judge(clause, incident, past)
    share = verdict.chance.share / 2**past.in_vain
    start = max(costs.wasted_start, past.first_step_s or 0.0)
    margin = costs.margin if verdict.transient is False else 1.0
    waiting, wasted = share * costs.waiting, (1 - share) * start * margin
    vain = f", halved for each of {past.in_vain} restarts in vain" if past.in_vain else ""
    times = f" x {margin:g} for a permanent failure" if margin > 1 else ""
    learnt = ", as long as its last start took" if start > costs.wasted_start else ""
    weighed = (
        f"{share:.2f} x {_hours(costs.waiting)} of waiting = {_hours(waiting)}, "
        f"against {1 - share:.2f} x {_hours(start)} of a wasted start{learnt}{times} = {_hours(wasted)}"
    )
    reason = f"{weighed}; chance {share:.0%}{vain}: {verdict.chance.sentence}"
    if verdict.transient is None and (grounds := verdict.chance.grounds) is not UNSET and grounds < _ENOUGH:
        missed = ("waiting costs more, but the chance has no grounds",) if waiting > wasted else ()
        plain = by_verdict.judge(clause, incident, past).reason
        few = f"its chance of {share:.0%} rests on {grounds} ends of its kind, and a restart needs {_ENOUGH}"
        return PolicyChoice("hold", f"{plain}; {few}", missed)
    if waiting > wasted:
        return PolicyChoice("restart", reason)
    missed = (f"{verdict.error_type} is transient, but a start costs more",) if verdict.transient else ()
    return PolicyChoice("stop" if verdict.transient is False else "hold", reason, missed)


def _hours(seconds: float) -> str:
    return f"{seconds / _HOUR:.2f} h"
