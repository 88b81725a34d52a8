"""What an event's actions ask for. Nothing of it is done here or by anyone who reads it.

Restart, finish and cancel are wishes that a policy may grant. What only notes something is taken as noted.
What would run a command, write a file or start another job is listed, and never executed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from midwatch.rules.model import SourceLocation
from midwatch.rules.oellm.generation import SchemaGeneration, mappings, text_of
from midwatch.streams.strict_yaml import YamlMapping, YamlNode, plain


class Deed(StrEnum):
    """What is asked for."""

    RESTART = "restart"
    FINISH = "finish"  # the monitor stops looking: no further start
    CANCEL = "cancel"  # the running attempt is ended, and no further start
    NOTE = "note"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Action:
    """One action of one event, with all conditions that guard it."""

    class_name: str
    deed: Deed
    location: SourceLocation
    reason: str = ""
    conditions: tuple[YamlNode, ...] = ()
    says: str = ""  # what would have been run or written


WISHES = {"RestartAction": Deed.RESTART, "FinishAction": Deed.FINISH, "CancelAction": Deed.CANCEL}
_NOTES = frozenset({"ErrorNoteAction", "LogAction", "LogMessageAction", "TerminationAction"})
_SAYING = (
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
        return ()  # `action` is a word for the log there
    guard = _nodes(event, "condition")
    found = [_action(node, (*guard, *own), generation) for node, own in _listed(event)]
    return tuple(found)


def _listed(event: YamlMapping) -> Iterator[tuple[YamlMapping, tuple[YamlNode, ...]]]:
    single = event.entries.get("action")
    if single is not None and isinstance(single[1], YamlMapping):
        yield from _unwrapped(single[1], ())
    for node in mappings(event, "actions"):
        yield from _unwrapped(node, ())


def _unwrapped(
    node: YamlMapping, outer: tuple[YamlNode, ...]
) -> Iterator[tuple[YamlMapping, tuple[YamlNode, ...]]]:
    """An `EventAction` is a wrapper that adds conditions."""
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
        deed = Deed.NOTE  # with restart policies beside, a RestartAction only records that one was wished for
    else:
        deed = WISHES.get(name, Deed.REFUSED)
    reason = text_of(node, "reason") or text_of(node, "note") or text_of(node, "message")
    said = [_words(plain(node.entries[key][1])) for key in _SAYING if key in node.entries]
    return Action(name, deed, node.location, reason, conditions, " ".join(word for word in said if word))


def _words(value: object) -> str:
    if isinstance(value, list):
        return " ".join(str(item) for item in value)
    return "" if value is None else str(value)
