"""Policies: one file for each kind of reasoning, registered here; the shipped ones are YAML in `packs`."""

from __future__ import annotations

from collections.abc import Mapping

from midwatch.agents.policies import always, never, selective, verdict
from midwatch.agents.policies.base import Choice, Clause, ClauseKind, Judge, Policy
from midwatch.streams.records import Incident

JUDGES: Mapping[ClauseKind, Judge] = {
    ClauseKind.VERDICT: verdict.judge,
    ClauseKind.SELECTIVE: selective.judge,
    ClauseKind.ALWAYS: always.judge,
    ClauseKind.NEVER: never.judge,
}


def choose(policy: Policy, incident: Incident) -> tuple[Clause, Choice]:
    """The clause that this incident falls under, and its answer."""
    clause = policy.clause(incident.verdict.mode)
    return clause, JUDGES[clause.kind](clause, incident)
