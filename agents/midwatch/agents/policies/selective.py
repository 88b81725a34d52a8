"""Oellm-autoexp's selective policy: excludes first, then any of three restart lists, then the default."""

from __future__ import annotations

from midwatch.agents.policies.base import Clause, PolicyChoice
from midwatch.agents.policies.conditions import Past
from midwatch.streams.records import Incident
from midwatch.streams.records.error_types import named_in


def judge(clause: Clause, incident: Incident, _past: Past) -> PolicyChoice:
    """One restart list is enough. An excluded error type is never restarted, even if a list names it."""
    verdict = incident.verdict
    listed = _listed(clause, incident)
    if named_in(verdict.error_type, clause.exclude_error_types):
        missed = (f"{listed}, but {verdict.error_type} is excluded",) if listed else ()
        return PolicyChoice("stop", f"{verdict.error_type} is excluded from restarts", missed)
    if listed:
        return PolicyChoice("restart", listed)
    if clause.default_action == "restart":
        return PolicyChoice("restart", f"{verdict.error_type} is not excluded, and the default is to restart")
    return PolicyChoice(clause.default_action, f"{verdict.error_type} is in none of the restart lists")


def _listed(clause: Clause, incident: Incident) -> str:
    verdict = incident.verdict
    if named_in(verdict.error_type, clause.restart_on_error_types):
        return f"the error type {verdict.error_type} is to be restarted"
    if verdict.subsystem and verdict.subsystem in clause.restart_on_subsystems:
        return f"the subsystem {verdict.subsystem} is to be restarted"
    if verdict.rule and verdict.rule in clause.restart_on_signals:
        return f"the rule {verdict.rule} is to be restarted"
    return ""
