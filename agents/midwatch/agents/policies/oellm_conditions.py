"""Conditions of oellm-autoexp as ours. Those that would touch a file, a command or another job stay unasked.

What a MetadataCondition asks is known at load for all that a file says of its own events; only what a line
or the verdict tells is left to be asked later.
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
from midwatch.rules.oellm.meaning import meant, rule_name
from midwatch.streams.records.error_types import named_in
from midwatch.streams.strict_yaml import YamlMapping, YamlNode, YamlScalar, plain

NEVER = Not(Always())
_TOLD_BY_THE_VERDICT = ("error_type", "subsystem", "severity")
_NAMES = ("signal_name", "event_name")
_NOT_KNOWN_HERE = ("job_name", "source", "source_path")
_LATCHES = ("persistent_pass", "persistent_fail")


@dataclass(frozen=True, slots=True)
class Asker:
    """Whose condition it is: the rules that it may be about, and what is said of the event itself."""

    rules: tuple[Rule, ...]
    metadata: Mapping[str, object]
    of_one_rule: bool


def all_of(nodes: Iterable[YamlNode], asker: Asker, notes: list[Note]) -> Condition:
    """Every condition that guards an action, as one."""
    return _joined([_condition(node, asker, notes) for node in nodes])


def _joined(conditions: list[Condition]) -> Condition:
    telling = [condition for condition in conditions if condition != Always()]
    if NEVER in telling:
        return NEVER
    return telling[0] if len(telling) == 1 else AllOf(tuple(telling)) if telling else Always()


def _condition(node: YamlNode, asker: Asker, notes: list[Note]) -> Condition:
    if not isinstance(node, YamlMapping):
        return Always()
    name = text_of(node, "class_name")
    for key in _LATCHES:
        if key in node.entries and plain(node.entries[key][1]):
            what = f"`{key}`: a condition is asked once for each end, so there is nothing to latch"
            notes.append(Note(NoteKind.MOOT, node.entries[key][0], what))
    match name:
        case "AlwaysTrueCondition":
            made: Condition = Always()
        case "MaxAttemptsCondition":
            made = AttemptsBelow(int(_number(node, "max_attempts", 1)))
        case "CooldownCondition":
            seconds = _number(node, "cooldown_seconds", 60)
            made = Cooldown(seconds) if seconds > 0 else Always()
        case "MetadataCondition":
            made = _metadata(node, asker)
        case "CompositeCondition" if text_of(node, "mode") == "any":
            made = _any(_children(node, asker, notes))
        case "CompositeCondition" | "AndCondition":
            made = _joined(_children(node, asker, notes))
        case "OrCondition":
            made = _any(_children(node, asker, notes))
        case "NotCondition":
            made = _not(_joined(_children(node, asker, notes)))
        case _:
            made = NotAsked(name or "a condition without class_name")
            what = f"{made.what} is not asked; what hangs on it waits for a person"
            notes.append(Note(NoteKind.NOT_EXECUTED, node.location, what))
    return made


def _children(node: YamlMapping, asker: Asker, notes: list[Note]) -> list[Condition]:
    single = node.entries.get("condition")
    nodes = [*mappings(node, "conditions"), *([single[1]] if single is not None else [])]
    return [_condition(child, asker, notes) for child in nodes]


def _any(conditions: list[Condition]) -> Condition:
    if Always() in conditions:
        return Always()
    telling = [condition for condition in conditions if condition != NEVER]
    return telling[0] if len(telling) == 1 else AnyOf(tuple(telling)) if telling else NEVER


def _not(condition: Condition) -> Condition:
    return condition.condition if isinstance(condition, Not) else Not(condition)


def _number(node: YamlMapping, key: str, usual: float) -> float:
    entry = node.entries.get(key)
    value = entry[1].value if entry is not None and isinstance(entry[1], YamlScalar) else None
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else usual


def _metadata(node: YamlMapping, asker: Asker) -> Condition:
    key = text_of(node, "key")
    values = _values(node)
    made: Condition
    if not key:
        made = NEVER
    elif key in _NOT_KNOWN_HERE:
        made = NotAsked(f"the metadata {key!r}")
    elif key == "state_key":
        made = FactIs("mode", values)
    elif key in _NAMES:
        made = FactIs("rule", tuple(rule_name(value, {}) for value in values))
    elif key in asker.metadata:
        made = Always() if _is(key, asker.metadata[key], values) else NEVER
    elif key in _TOLD_BY_THE_VERDICT:
        made = FactIs(key, values)
    else:
        made = _of_rules(key, values, asker)
    return made


def _of_rules(key: str, values: tuple[str, ...], asker: Asker) -> Condition:
    """Rules of which the file says it are known by name; what a line tells is a capture of it."""
    named = tuple(r.name for r in asker.rules if key in r.metadata and _is(key, r.metadata[key], values))
    captured = any(meant(key) in rule.captures.values() for rule in asker.rules)
    if asker.of_one_rule and named:
        return Always()
    ways: list[Condition] = [FactIs("rule", named)] if named else []
    if captured:
        ways.append(FactIs(meant(key), values))
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
