"""Reads the text of a policy file into a policy, or reports all its errors at once. Pure."""

from __future__ import annotations

import math
from enum import StrEnum

from midwatch.agents.policies.base import Clause, ClauseKind, Costs, Guard, OnTimeLimit, Policy, PolicyMode
from midwatch.agents.policies.condition_reader import read_condition
from midwatch.agents.policies.conditions import Always
from midwatch.rules.errors import LocatedError, RuleErrors
from midwatch.rules.fields import Fields
from midwatch.streams.records import Action
from midwatch.streams.strict_yaml import YamlNode, read_yaml


class DefaultAction(StrEnum):
    """What a clause does where nothing else decides."""

    RESTART = "restart"
    STOP = "stop"
    HOLD = "hold"


class GuardAction(StrEnum):
    """What a guard asks for."""

    RESTART = "restart"
    CANCEL = "cancel"
    STOP = "stop"
    HOLD = "hold"


ANY_STATE = "any"
_ACTIONS: dict[GuardAction, Action] = {
    GuardAction.RESTART: "restart",
    GuardAction.CANCEL: "cancel",
    GuardAction.STOP: "stop",
    GuardAction.HOLD: "hold",
}


def read_policy(file: str, content: bytes) -> Policy:
    """The policy of one file.

    Raises:
        RuleErrors: every mistake of the file, each with its line and column.
    """
    errors: list[LocatedError] = []
    tree = read_yaml(file, content, errors)
    policy = _policy(tree, errors) if tree is not None else None
    if errors or policy is None:
        raise RuleErrors(errors)
    return policy


def _policy(tree: YamlNode, errors: list[LocatedError]) -> Policy:
    fields = Fields(tree, errors, "a policy")
    name = fields.text("policy", required=True)
    description = fields.text("description")
    cancelled = fields.flag("restart_cancelled") or False
    on_time_limit = fields.choice("on_time_limit", OnTimeLimit)
    clauses: dict[PolicyMode, Clause] = {}
    for key, (place, node) in fields.mapping("modes").items():
        if key not in [mode.value for mode in PolicyMode]:
            fields.complain(place, f"{key!r} is not a mode", "write crash, stall, timeout or success")
            continue
        clauses[PolicyMode(key)] = _clause(node, errors)
    fields.done()
    return Policy(name, clauses, cancelled, description, on_time_limit=on_time_limit)


def _clause(node: YamlNode, errors: list[LocatedError]) -> Clause:
    fields = Fields(node, errors, "a clause")
    kind = fields.choice("kind", ClauseKind) or ClauseKind.NEVER
    default = fields.choice("default", DefaultAction) or DefaultAction.STOP
    unlimited = fields.flag("unlimited") or False
    limit = fields.whole_number("max_restarts")
    restart = fields.node("restart_on")
    exclude = fields.node("exclude")
    types, subsystems, signals = _lists(restart, errors, "restart_on")
    excluded, _, _ = _lists(exclude, errors, "exclude")
    guards = tuple(_guard(each, errors) for each in fields.items("guards"))
    across = fields.flag("across_modes") or False
    costs = fields.node("costs")
    restart_reason, stop_reason = fields.text("restart_reason"), fields.text("stop_reason")
    fields.done()
    if guards and kind is not ClauseKind.GUARDED:
        fields.complain(
            fields.place("guards"), f"a clause of kind {kind} has no guards", "Write kind: guarded."
        )
    if costs is not None and kind is not ClauseKind.EXPECTED_COST:
        what = f"a clause of kind {kind} weighs no costs"
        fields.complain(fields.place("costs"), what, "Write kind: expected_cost.")
    return Clause(
        kind=kind,
        max_restarts=None if unlimited else 3 if limit is None else limit,
        default_action="restart"
        if default is DefaultAction.RESTART
        else "hold"
        if default is DefaultAction.HOLD
        else "stop",
        restart_on_error_types=types,
        restart_on_subsystems=subsystems,
        restart_on_signals=signals,
        exclude_error_types=excluded,
        across_modes=across,
        restart_reason=restart_reason,
        stop_reason=stop_reason,
        guards=guards,
        costs=_costs(costs, errors) if costs is not None else Costs(),
    )


def _costs(node: YamlNode, errors: list[LocatedError]) -> Costs:
    fields, usual = Fields(node, errors, "costs"), Costs()
    waiting, wasted_start = fields.duration("waiting"), fields.duration("wasted_start")
    margin = fields.number("margin")
    if margin is not None and not (math.isfinite(margin) and margin >= 1):
        fields.complain(fields.place("margin"), "`margin` is less than 1", "Write 1 or more.")
    fields.done()
    return Costs(
        waiting=usual.waiting if waiting is None else waiting,
        wasted_start=usual.wasted_start if wasted_start is None else wasted_start,
        margin=usual.margin if margin is None else margin,
    )


def _guard(node: YamlNode, errors: list[LocatedError]) -> Guard:
    fields = Fields(node, errors, "a guard")
    action = fields.choice("do", GuardAction)
    if action is None and "do" not in fields.entries:
        fields.complain(fields.location, "a guard has no `do`", "Write restart, cancel, stop or hold.")
    rules = tuple(text for text, _ in fields.texts("rules"))
    states = [text for text, _ in fields.texts("states")]
    if len(states) not in (0, 2):
        fields.complain(fields.place("states"), "`states` are two: old, new", "Write [RUNNING, FAILED].")
    when = fields.node("when")
    reason = fields.text("reason")
    fields.done()
    old, new = (
        None if state == ANY_STATE else state.upper() for state in (*states, ANY_STATE, ANY_STATE)[:2]
    )
    return Guard(
        action=_ACTIONS[action or GuardAction.HOLD],
        rules=rules,
        states=(old, new) if states else None,
        condition=read_condition(when, errors) if when is not None else Always(),
        reason=reason,
    )


def _lists(
    node: YamlNode | None, errors: list[LocatedError], what: str
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    if node is None:
        return (), (), ()
    fields = Fields(node, errors, what)
    types = tuple(text for text, _ in fields.texts("error_types"))
    if what == "exclude":
        fields.done()
        return types, (), ()
    subsystems = tuple(text for text, _ in fields.texts("subsystems"))
    signals = tuple(text for text, _ in fields.texts("signals"))
    fields.done()
    return types, subsystems, signals
