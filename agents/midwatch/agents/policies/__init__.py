"""Policies: each kind of reasoning is one file, listed in `JUDGES`. `packs` holds the shipped policies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from midwatch.agents.policies import (
    always,
    expected_cost,
    guarded,
    never,
    selective,
    time_limit,
    verdict,
)
from midwatch.agents.policies.base import Clause, ClauseKind, Judge, Policy, PolicyChoice
from midwatch.agents.policies.conditions import Past
from midwatch.streams.records import Incident

POLICIES: Mapping[str, Judge] = {
    ClauseKind.VERDICT: verdict.judge,
    ClauseKind.SELECTIVE: selective.judge,
    ClauseKind.ALWAYS: always.judge,
    ClauseKind.NEVER: never.judge,
    ClauseKind.GUARDED: guarded.judge,
    ClauseKind.EXPECTED_COST: expected_cost.judge,
}


def choose(
    policy: Policy, incident: Incident, past: Past | None = None, judges: Mapping[str, Judge] = POLICIES
) -> tuple[Clause, PolicyChoice]:
    """The clause for this incident, and its choice. `past` None: nothing was done for the job before."""
    if policy.on_time_limit is not None and incident.verdict.at_time_limit:
        return time_limit.judge(policy, incident, past or Past())
    clause = policy.clause(incident.verdict.mode)
    choice = judges[clause.kind](clause, incident, past or Past())
    note = clause.restart_reason if choice.action == "restart" else clause.stop_reason
    return clause, replace(choice, reason=f"{choice.reason} ({note})") if note else choice
