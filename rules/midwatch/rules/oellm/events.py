"""The events of a configuration (`log_signals`, `log_events`, `state_events`) as values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from midwatch.rules.errors import LocatedError
from midwatch.rules.fields import Fields
from midwatch.rules.model import Note, NoteKind, SourceLocation
from midwatch.rules.oellm.actions import Action, actions_of
from midwatch.rules.oellm.generation import SchemaGeneration, mappings, text_of
from midwatch.streams.strict_yaml import YamlList, YamlMapping, YamlNode, YamlScalar, plain


class PatternType(StrEnum):
    """How to read the pattern of an event."""

    REGEX = "regex"
    SUBSTRING = "substring"
    INACTIVITY = "inactivity"


@dataclass(frozen=True, slots=True)
class LogEvent:
    """Something to look for in the log. `mode` is the key of its state, "" where it has none."""

    name: str
    location: SourceLocation
    pattern: str
    pattern_location: SourceLocation
    pattern_type: PatternType
    groups: Mapping[str, str | int] = field(default_factory=dict)  # field -> group
    metadata: Mapping[str, object] = field(default_factory=dict)
    mode: str = ""
    actions: tuple[Action, ...] = ()
    polls: int = 1
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class StateEvent:
    """A state of the scheduler to look for: `name` is the mode, or `old` and `new` are the transition."""

    name: str
    location: SourceLocation
    old: str | None = None
    new: str | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)
    actions: tuple[Action, ...] = ()


MODE_OF_STATE = {
    "SuccessState": "success",
    "CrashState": "crash",
    "StalledState": "stall",
    "TimeoutState": "timeout",
    "StartedState": "running",
    "PendingState": "pending",
    "UndefinedState": "undefined",
}
LOG_KEYS = frozenset(
    {
        "class_name",
        "name",
        "pattern",
        "pattern_type",
        "metadata",
        "extract_groups",
        "state",
        "mode",
        "action",
        "actions",
        "condition",
        "match_once",
        "inactivity_polls",
        "inactivity_timeout_s",
    }
)


@dataclass(slots=True)
class EventReader:
    """Reads events. It collects mistakes in `errors` and notes in `notes`."""

    generation: SchemaGeneration
    errors: list[LocatedError]
    notes: list[Note]

    def log_events(self, monitor: YamlMapping) -> tuple[LogEvent, ...]:
        """The events of `log_signals` and `log_events`, in order."""
        nodes = [*mappings(monitor, "log_signals"), *mappings(monitor, "log_events")]
        return tuple(self._log_event(node, number) for number, node in enumerate(nodes, 1))

    def state_events(self, monitor: YamlMapping) -> tuple[StateEvent, ...]:
        """The events of `state_events`, in order."""
        return tuple(self._state_event(node) for node in mappings(monitor, "state_events"))

    def _log_event(self, node: YamlMapping, number: int) -> LogEvent:
        name = text_of(node, "name") or f"event_{number}"
        fields = Fields(node, self.errors, f"event {name!r}")
        kind = fields.choice("pattern_type", PatternType) or self._default_type()
        pattern = fields.text("pattern", required=kind is not PatternType.INACTIVITY)
        metadata = _metadata(fields)
        for key, (place, value) in node.entries.items():
            if key not in LOG_KEYS:
                metadata[key] = plain(value)
                what = f"`{key}` of event {name!r} is unknown: midwatch keeps it as metadata"
                self.notes.append(Note(NoteKind.WARNING, place, what))
        return LogEvent(
            name=name,
            location=node.location,
            pattern=pattern,
            pattern_location=fields.place("pattern"),
            pattern_type=kind,
            groups=self._groups(fields),
            metadata=metadata,
            mode=self._mode(node, name),
            actions=actions_of(node, self.generation),
            polls=fields.whole_number("inactivity_polls") or 1,
            seconds=fields.number("inactivity_timeout_s") or 0.0,
        )

    def _default_type(self) -> PatternType:
        newest = self.generation is SchemaGeneration.TRANSITIONS
        return PatternType.SUBSTRING if newest else PatternType.REGEX

    def _mode(self, node: YamlMapping, name: str) -> str:
        if self.generation is SchemaGeneration.MODES:
            return text_of(node, "mode")
        entry = node.entries.get("state")
        if entry is None:
            return ""
        if not isinstance(entry[1], YamlMapping):
            return text_of(node, "state")
        state = text_of(entry[1], "class_name")
        mode = text_of(entry[1], "key") or MODE_OF_STATE.get(state, "")
        if not mode:
            what = f"event {name!r} has an unknown state {state!r}"
            remedy = f"Known: {', '.join(MODE_OF_STATE)}."
            self.errors.append(LocatedError(entry[1].location, what, remedy))
        return mode

    def _groups(self, fields: Fields) -> dict[str, str | int]:
        found: dict[str, str | int] = {}
        for key, (place, node) in fields.mapping("extract_groups").items():
            value = node.value if isinstance(node, YamlScalar) else None
            if isinstance(value, (str, int)) and not isinstance(value, bool):
                found[key] = value
            else:
                what = f"`extract_groups` names no group for {key!r}"
                self.errors.append(LocatedError(place, what, "Write a group's name, its number, or `match`."))
        return found

    def _state_event(self, node: YamlMapping) -> StateEvent:
        fields = Fields(node, self.errors, "a state event")
        old, new = _transition(fields.node("transition"))
        state = node.entries.get("state")
        inner = text_of(state[1], "class_name") if state and isinstance(state[1], YamlMapping) else ""
        name = text_of(node, "name") or MODE_OF_STATE.get(inner, "")
        actions = actions_of(node, self.generation)
        return StateEvent(name, node.location, old, new, _metadata(fields), actions)


def _metadata(fields: Fields) -> dict[str, object]:
    return {key: plain(value) for key, (_, value) in fields.mapping("metadata").items()}


def _transition(node: YamlNode | None) -> tuple[str | None, str | None]:
    """Old and new state in capitals; None stands for any."""
    if not isinstance(node, YamlList):
        return None, None
    words = list(_state_words(node))
    return (words[0] if words else None, words[1] if len(words) > 1 else None)


def _state_words(node: YamlList) -> Iterator[str | None]:
    for item in node.items:
        value = item.value if isinstance(item, YamlScalar) else None
        yield value.upper() if isinstance(value, str) else None
