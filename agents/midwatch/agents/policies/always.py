"""Restart after every end, within the budget, except after an excluded error type."""

from __future__ import annotations

from midwatch.agents.policies.base import Clause, PolicyChoice
from midwatch.agents.policies.conditions import Past
from midwatch.streams.records import Incident
from midwatch.streams.records.error_types import named_in


def judge(clause: Clause, incident: Incident, _past: Past) -> PolicyChoice:
    """A restart, unless the error type is excluded."""
    verdict = incident.verdict
    if named_in(verdict.error_type, clause.exclude_error_types):
        return PolicyChoice("stop", f"{verdict.error_type} is excluded from restarts")
    return PolicyChoice("restart", f"this policy restarts every {verdict.mode or 'end'}")
