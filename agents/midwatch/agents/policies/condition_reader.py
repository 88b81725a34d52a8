"""Reads and writes the conditions of midwatch's policy files. Each is a mapping of one key. Pure."""

from __future__ import annotations

from collections.abc import Iterable

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
from midwatch.rules.errors import LocatedError
from midwatch.rules.fields import Fields
from midwatch.rules.files.writer import seconds_text
from midwatch.streams.strict_yaml import YamlNode

_KEYS = ("always", "attempts_below", "cooldown", "fact", "all", "any", "not", "not_asked")


def read_condition(node: YamlNode, errors: list[LocatedError]) -> Condition:
    """One condition. A mistake goes to `errors` and becomes a condition that is never asked."""
    fields = Fields(node, errors, "a condition")
    keys = [key for key in _KEYS if key in fields.entries]
    condition: Condition | None = None
    if len(keys) == 1:
        condition = _read(keys[0], fields, errors)
    elif fields.entries:
        fields.complain(fields.location, "a condition has one key", f"Write one of: {', '.join(_KEYS)}.")
    fields.known += _KEYS
    fields.done()
    return condition if condition is not None else NotAsked("a condition that could not be read")


def _read(key: str, fields: Fields, errors: list[LocatedError]) -> Condition | None:
    condition: Condition | None = None
    match key:
        case "always":
            condition = Always() if fields.flag(key) else Not(Always())
        case "attempts_below":
            limit = fields.whole_number(key)
            condition = AttemptsBelow(limit) if limit is not None else None
        case "cooldown":
            seconds = fields.duration(key)
            condition = Cooldown(seconds) if seconds is not None else None
        case "fact":
            node = fields.node(key)
            condition = _fact(node, errors) if node is not None else None
        case "all":
            condition = AllOf(_several(fields.items(key), errors))
        case "any":
            condition = AnyOf(_several(fields.items(key), errors))
        case "not":
            node = fields.node(key)
            condition = Not(read_condition(node, errors)) if node is not None else None
        case _:
            condition = NotAsked(fields.text(key))
    return condition


def _several(nodes: Iterable[YamlNode], errors: list[LocatedError]) -> tuple[Condition, ...]:
    return tuple(read_condition(node, errors) for node in nodes)


def _fact(node: YamlNode, errors: list[LocatedError]) -> FactIs:
    fields = Fields(node, errors, "`fact`")
    key = fields.text("key", required=True)
    values = tuple(text for text, _ in fields.texts("is"))
    fields.done()
    return FactIs(key, values)


def plain_condition(condition: Condition) -> dict[str, object]:
    """The condition as a policy file writes it."""
    written: dict[str, object] = {"always": True}
    match condition:
        case AttemptsBelow(limit):
            written = {"attempts_below": limit}
        case Cooldown(seconds):
            written = {"cooldown": seconds_text(seconds)}
        case FactIs(key, values):
            written = {"fact": {"key": key, **({"is": list(values)} if values else {})}}
        case AllOf(conditions):
            written = {"all": [plain_condition(each) for each in conditions]}
        case AnyOf(conditions):
            written = {"any": [plain_condition(each) for each in conditions]}
        case Not(inner):
            written = {"not": plain_condition(inner)}
        case NotAsked(what):
            written = {"not_asked": what}
    return written
