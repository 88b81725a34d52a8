"""What an event's actions ask for. Neither this module nor its callers execute an action.

Restart, finish and cancel are requests that a policy may grant. A note has no further effect.
An action that would run a command, write a file or start another job is listed, and never executed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from midwatch.rules.model import SourceLocation
from midwatch.rules.oellm.generation import SchemaGeneration, mappings, text_of
from midwatch.streams.strict_yaml import YamlMapping, YamlNode, plain


class ActionKind(StrEnum):
    """What an action asks for."""

    RESTART = "restart"
    FINISH = "finish"  # stop the monitor, and start no further attempt
    CANCEL = "cancel"  # end the running attempt, and start no further one
    NOTE = "note"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Action:
    """One action of one event, with all conditions that guard it."""

    class_name: str
    kind: ActionKind
    location: SourceLocation
    reason: str = ""
    conditions: tuple[YamlNode, ...] = ()
    detail: str = ""  # the command, file or job that it names


REQUESTS = {
    "RestartAction": ActionKind.RESTART,
    "FinishAction": ActionKind.FINISH,
    "CancelAction": ActionKind.CANCEL,
}
_NOTES = frozenset({"ErrorNoteAction", "LogAction", "LogMessageAction", "TerminationAction"})
_DETAIL_KEYS = (
    "command",
    "script",
    "overrides",
    "path",
    "content",
    "exclude_file",
    "event_name",
    "job_config",
    "config_path",
)


def actions_of(event: YamlMapping, generation: SchemaGeneration) -> tuple[Action, ...]:
    """All actions of an event, in order."""
    if generation is SchemaGeneration.MODES:
        return ()  # here `action` is only text for the log
    guard = _nodes(event, "condition")
    return tuple(_action(node, (*guard, *wrapped), generation) for node, wrapped in _listed(event))


def _listed(event: YamlMapping) -> Iterator[tuple[YamlMapping, tuple[YamlNode, ...]]]:
    single = event.entries.get("action")
    if single is not None and isinstance(single[1], YamlMapping):
        yield from _unwrapped(single[1], ())
    for node in mappings(event, "actions"):
        yield from _unwrapped(node, ())


def _unwrapped(
    node: YamlMapping, outer: tuple[YamlNode, ...]
) -> Iterator[tuple[YamlMapping, tuple[YamlNode, ...]]]:
    """An `EventAction` wraps another action and adds conditions to it."""
    conditions = (*outer, *mappings(node, "conditions"), *_nodes(node, "condition"))
    inner = node.entries.get("action")
    if inner is not None and isinstance(inner[1], YamlMapping):
        yield from _unwrapped(inner[1], conditions)
    else:
        yield node, conditions


def _nodes(node: YamlMapping, key: str) -> tuple[YamlNode, ...]:
    entry = node.entries.get(key)
    return (entry[1],) if entry is not None and isinstance(entry[1], YamlMapping) else ()


def _action(node: YamlMapping, conditions: tuple[YamlNode, ...], generation: SchemaGeneration) -> Action:
    name = text_of(node, "class_name")
    if name in _NOTES or (generation is SchemaGeneration.STATES and name == "RestartAction"):
        kind = ActionKind.NOTE  # restart policies decide; the RestartAction only records the request
    else:
        kind = REQUESTS.get(name, ActionKind.REFUSED)
    reason = text_of(node, "reason") or text_of(node, "note") or text_of(node, "message")
    details = [_words(plain(node.entries[key][1])) for key in _DETAIL_KEYS if key in node.entries]
    return Action(name, kind, node.location, reason, conditions, " ".join(text for text in details if text))


def _words(value: object) -> str:
    if isinstance(value, list):
        return " ".join(str(item) for item in value)
    return "" if value is None else str(value)
