"""The shipped reasoning: restart a transient failure, stop a permanent one, hold the rest for a person."""

from __future__ import annotations

from midwatch.agents.policies.base import Clause, PolicyChoice
from midwatch.agents.policies.conditions import Past
from midwatch.streams.records import Incident
from midwatch.streams.records.error_types import named_in

_UNKNOWN = "it is not known whether a restart can help"


def judge(clause: Clause, incident: Incident, _past: Past) -> PolicyChoice:
    """Decides by the verdict's transience alone. An excluded error type is never restarted."""
    verdict = incident.verdict
    if named_in(verdict.error_type, clause.exclude_error_types):
        missed = (f"transient, but {verdict.error_type} is excluded",) if verdict.transient else ()
        return PolicyChoice("stop", f"{verdict.error_type} is excluded from restarts", missed)
    if verdict.transient is True:
        return PolicyChoice("restart", f"{verdict.error_type} is transient")
    if verdict.transient is False and verdict.at_time_limit:
        return PolicyChoice("stop", "the time limit was reached: the same start would reach it again")
    if verdict.transient is False:
        return PolicyChoice("stop", f"{verdict.error_type} is permanent: the same start would fail again")
    return PolicyChoice("hold", f"{verdict.error_type}: {verdict.doubt or _UNKNOWN}")
