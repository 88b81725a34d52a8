"""A policy as the text of a policy file. `read_policy` reads the same policy back. Pure."""

from __future__ import annotations

from midwatch.agents.policies.base import Clause, Costs, Guard, Policy
from midwatch.agents.policies.condition_reader import plain_condition
from midwatch.agents.policies.conditions import Always
from midwatch.agents.policies.reader import ANY_STATE
from midwatch.rules.files.writer import seconds_text, yaml_text


def policy_text(policy: Policy) -> str:
    """The text of the file, without the policy's notes."""
    document: dict[str, object] = {"policy": policy.name, "description": policy.description}
    if policy.restart_cancelled:
        document["restart_cancelled"] = True
    if policy.on_time_limit is not None:
        document["on_time_limit"] = policy.on_time_limit.value
    document["modes"] = {mode.value: _clause(clause) for mode, clause in policy.clauses.items()}
    return yaml_text(document)


def _clause(clause: Clause) -> dict[str, object]:
    limit: dict[str, object] = (
        {"unlimited": True} if clause.max_restarts is None else {"max_restarts": clause.max_restarts}
    )
    lists = {
        "error_types": clause.restart_on_error_types,
        "subsystems": clause.restart_on_subsystems,
        "signals": clause.restart_on_signals,
    }
    restart_on = {key: list(values) for key, values in lists.items() if values}
    written: dict[str, object] = {"kind": str(clause.kind), **limit, "default": clause.default_action}
    optional: dict[str, object] = {
        "across_modes": clause.across_modes,
        "restart_on": restart_on,
        "exclude": {"error_types": list(clause.exclude_error_types)} if clause.exclude_error_types else None,
        "restart_reason": clause.restart_reason,
        "stop_reason": clause.stop_reason,
        "guards": [_guard(guard) for guard in clause.guards],
        "costs": _costs(clause.costs) if clause.costs != Costs() else None,
    }
    return written | {key: value for key, value in optional.items() if value}


def _costs(costs: Costs) -> dict[str, object]:
    return {
        "waiting": seconds_text(costs.waiting),
        "wasted_start": seconds_text(costs.wasted_start),
        "margin": costs.margin,
    }


def _guard(guard: Guard) -> dict[str, object]:
    written: dict[str, object] = {"do": guard.action}
    if guard.rules:
        written["rules"] = list(guard.rules)
    if guard.states is not None:
        written["states"] = [state or ANY_STATE for state in guard.states]
    if guard.condition != Always():
        written["when"] = plain_condition(guard.condition)
    if guard.reason:
        written["reason"] = guard.reason
    return written
