"""Turns conditions of oellm-autoexp into midwatch conditions.

A condition that would touch a file, a command or another job is never asked. A MetadataCondition on the
event's own metadata is answered when the file is loaded. One on a line or on the verdict is asked later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from midwatch.agents.policies.conditions import (
    AllOf,
    Always,
    AnyOf,
    AttemptsBelow,
    Condition,
    Cooldown,
    FactIs,
    Not,
    NotAsked,
)
from midwatch.rules.model import Note, NoteKind, Rule
from midwatch.rules.oellm.generation import mappings, text_of
from midwatch.rules.oellm.meaning import capture_name, rule_name
from midwatch.streams.records.error_types import named_in
from midwatch.streams.strict_yaml import YamlMapping, YamlNode, YamlScalar, plain

NEVER = Not(Always())
_VERDICT_FACTS = ("error_type", "subsystem", "severity")
_NAMES = ("signal_name", "event_name")
_NOT_KNOWN_HERE = ("job_name", "source", "source_path")
_LATCHES = ("persistent_pass", "persistent_fail")


@dataclass(frozen=True, slots=True)
class ConditionScope:
    """What a condition is about: rules, and the metadata of its event."""

    rules: tuple[Rule, ...]
    metadata: Mapping[str, object]
    of_one_rule: bool


def all_of(nodes: Iterable[YamlNode], scope: ConditionScope, notes: list[Note]) -> Condition:
    """All conditions that guard an action, as one condition."""
    return _joined([_condition(node, scope, notes) for node in nodes])


def _joined(conditions: list[Condition]) -> Condition:
    relevant = [condition for condition in conditions if condition != Always()]
    if NEVER in relevant:
        return NEVER
    return relevant[0] if len(relevant) == 1 else AllOf(tuple(relevant)) if relevant else Always()


def _condition(node: YamlNode, scope: ConditionScope, notes: list[Note]) -> Condition:
    if not isinstance(node, YamlMapping):
        return Always()
    name = text_of(node, "class_name")
    for key in _LATCHES:
        if key in node.entries and plain(node.entries[key][1]):
            what = f"`{key}`: midwatch asks a condition once for each end, so there is nothing to latch"
            notes.append(Note(NoteKind.MOOT, node.entries[key][0], what))
    match name:
        case "AlwaysTrueCondition":
            condition: Condition = Always()
        case "MaxAttemptsCondition":
            condition = AttemptsBelow(int(_number(node, "max_attempts", 1)))
        case "CooldownCondition":
            seconds = _number(node, "cooldown_seconds", 60)
            condition = Cooldown(seconds) if seconds > 0 else Always()
        case "MetadataCondition":
            condition = _metadata(node, scope)
        case "CompositeCondition" if text_of(node, "mode") == "any":
            condition = _any(_children(node, scope, notes))
        case "CompositeCondition" | "AndCondition":
            condition = _joined(_children(node, scope, notes))
        case "OrCondition":
            condition = _any(_children(node, scope, notes))
        case "NotCondition":
            condition = _not(_joined(_children(node, scope, notes)))
        case _:
            condition = NotAsked(name or "a condition without class_name")
            what = f"{condition.what} is not asked: an action that depends on it waits for a person"
            notes.append(Note(NoteKind.NOT_EXECUTED, node.location, what))
    return condition


def _children(node: YamlMapping, scope: ConditionScope, notes: list[Note]) -> list[Condition]:
    single = node.entries.get("condition")
    nodes = [*mappings(node, "conditions"), *([single[1]] if single is not None else [])]
    return [_condition(child, scope, notes) for child in nodes]


def _any(conditions: list[Condition]) -> Condition:
    if Always() in conditions:
        return Always()
    relevant = [condition for condition in conditions if condition != NEVER]
    return relevant[0] if len(relevant) == 1 else AnyOf(tuple(relevant)) if relevant else NEVER


def _not(condition: Condition) -> Condition:
    return condition.condition if isinstance(condition, Not) else Not(condition)


def _number(node: YamlMapping, key: str, default: float) -> float:
    entry = node.entries.get(key)
    value = entry[1].value if entry is not None and isinstance(entry[1], YamlScalar) else None
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else default


def _metadata(node: YamlMapping, scope: ConditionScope) -> Condition:
    key = text_of(node, "key")
    values = _values(node)
    condition: Condition
    if not key:
        condition = NEVER
    elif key in _NOT_KNOWN_HERE:
        condition = NotAsked(f"the metadata {key!r}")
    elif key == "state_key":
        condition = FactIs("mode", values)
    elif key in _NAMES:
        condition = FactIs("rule", tuple(rule_name(value, {}) for value in values))
    elif key in scope.metadata:
        condition = Always() if _is(key, scope.metadata[key], values) else NEVER
    elif key in _VERDICT_FACTS:
        condition = FactIs(key, values)
    else:
        condition = _of_rules(key, values, scope)
    return condition


def _of_rules(key: str, values: tuple[str, ...], scope: ConditionScope) -> Condition:
    """Holds for the rules whose metadata in the file have the value, or whose captures do."""
    named = tuple(r.name for r in scope.rules if key in r.metadata and _is(key, r.metadata[key], values))
    captured = any(capture_name(key) in rule.captures.values() for rule in scope.rules)
    if scope.of_one_rule and named:
        return Always()
    ways: list[Condition] = [FactIs("rule", named)] if named else []
    if captured:
        ways.append(FactIs(capture_name(key), values))
    return _any(ways)


def _values(node: YamlMapping) -> tuple[str, ...]:
    entry = node.entries.get("equals")
    equals = plain(entry[1]) if entry is not None else None
    entry = node.entries.get("within")
    within = plain(entry[1]) if entry is not None else None
    allowed = [str(value) for value in within] if isinstance(within, list) else None
    if equals is None:
        return tuple(allowed or ())
    return (str(equals),) if allowed is None or str(equals) in allowed else ("",)


def _is(key: str, value: object, values: tuple[str, ...]) -> bool:
    if value is None or not values:
        return value is not None
    return named_in(str(value), values) if key == "error_type" else str(value) in values
