"""The keys of a monitor or a job besides its events: its silence limit, and keys without effect here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from midwatch.rules.expressions import quote
from midwatch.rules.model import Note, NoteKind, Phase, Role, Rule, Severity, SourceLocation
from midwatch.rules.oellm.events import LogEvent, PatternType
from midwatch.rules.oellm.generation import SchemaGeneration, text_of
from midwatch.streams.strict_yaml import YamlMapping, YamlNode, YamlScalar, plain

DEFAULT_INACTIVITY = 900.0
DEFAULT_POLL = 60.0
NEVER = 7 * 86400.0
"""A silence limit, in seconds, that means "off"."""

_LINES_COME = "midwatch reads lines as they are written"
_MOOT = {
    "poll_interval_seconds": f"nothing is polled: {_LINES_COME}",
    "check_interval_seconds": f"nothing is checked at intervals: {_LINES_COME}",
    "start_condition_interval_seconds": "midwatch delays no start",
    "debug_sync": "there is no second thread that could be out of step",
    "state_whitelist": "midwatch follows all states of the scheduler",
    "array_len": "each task of an array is a separate job",
    "log_to_file": "the launch decides where a job writes",
    **dict.fromkeys(
        ("extra_args", "array_args", "command", "slurm"), "`midwatch run` takes the command that starts a job"
    ),
    "name": "`midwatch run --job` or its native id names a job",
    **dict.fromkeys(
        ("log_path_template", "output_paths", "log_path", "log_path_current", "base_output_dir"),
        "`midwatch run --log` or `midwatch ship` names the files to follow",
    ),
    **dict.fromkeys(
        ("config_path", "config_path_current"), "the launch writes it, and midwatch does not read it"
    ),
}
_NOT_EXECUTED = {
    "termination_command": "the scheduler reports the end, and midwatch runs no command for it",
    "start_condition_cmd": "a restart waits only for the old attempt's end",
    "start_condition": "a restart waits only for the old attempt's end",
    "cancel_condition": "midwatch consults no file, command or other job about a cancel",
    "finish_condition": "midwatch consults no file, command or other job about the job's end",
}
_READ_ELSEWHERE = frozenset(
    {
        "class_name",
        "defaults",
        "log_signals",
        "log_events",
        "state_events",
        "metadata",
        "termination_string",
        "inactivity_threshold_seconds",
    }
)
KNOWN_KEYS = _MOOT.keys() | _NOT_EXECUTED.keys() | _READ_ELSEWHERE - {"defaults"}


@dataclass(frozen=True, slots=True)
class Silence:
    """How long a job may write nothing new before it counts as stalled. None: no limit."""

    seconds: float | None

    def limits(self) -> Mapping[Phase, float]:
        """The same limit in every phase, since the configuration has no phases."""
        return dict.fromkeys(Phase, self.seconds if self.seconds is not None else NEVER)


def silence_of(
    monitor: YamlMapping, generation: SchemaGeneration, events: tuple[LogEvent, ...], notes: list[Note]
) -> Silence:
    """The limit of `inactivity_threshold_seconds`, or in the newest generation of the inactivity events."""
    if text_of(monitor, "class_name") == "NullMonitor":
        what = "NullMonitor watches nothing, so there is no silence limit"
        notes.append(Note(NoteKind.CHANGED, monitor.location, what))
        return Silence(None)
    if generation is SchemaGeneration.TRANSITIONS:
        poll = _seconds(monitor, "poll_interval_seconds", DEFAULT_POLL, notes) or DEFAULT_POLL
        waits = [
            max(event.polls * poll, event.seconds)
            for event in events
            if event.pattern_type is PatternType.INACTIVITY
        ]
        return Silence(min(waits, default=None))
    return Silence(_seconds(monitor, "inactivity_threshold_seconds", DEFAULT_INACTIVITY, notes))


def _seconds(monitor: YamlMapping, key: str, default: float, notes: list[Note]) -> float | None:
    entry = monitor.entries.get(key)
    if entry is None:
        return default
    value = entry[1].value if isinstance(entry[1], YamlScalar) else None
    if value is None or value == 0:
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
        return float(value)
    what = f"`{key}` is {value!r}, which only the launch can evaluate: midwatch takes {default:g} s"
    notes.append(Note(NoteKind.WARNING, entry[1].location, what, "Write the number of seconds."))
    return default


def termination_rule(monitor: YamlMapping, name: str) -> Rule | None:
    """The rule for the text by which a job says that it is done."""
    text = text_of(monitor, "termination_string")
    if not text:
        return None
    place = monitor.entries["termination_string"][1].location
    return Rule(name=name, pattern=quote(text), role=Role.SUCCESS, severity=Severity.INFO, location=place)


def note_keys(monitor: YamlMapping, generation: SchemaGeneration, notes: list[Note]) -> dict[str, object]:
    """Notes which other keys have no effect. Returns the unknown keys: the caller keeps them as metadata."""
    unknown: dict[str, object] = {}
    for key, (place, node) in monitor.entries.items():
        counts = generation is SchemaGeneration.TRANSITIONS and key == "poll_interval_seconds"
        if key in _READ_ELSEWHERE or counts or _empty(node):
            continue
        if key in _MOOT:
            notes.append(Note(NoteKind.MOOT, place, f"`{key}`: {_MOOT[key]}"))
        elif key in _NOT_EXECUTED:
            notes.append(
                Note(NoteKind.NOT_EXECUTED, place, f"`{key}`{_value_text(node)}: {_NOT_EXECUTED[key]}")
            )
        else:
            unknown[key] = plain(node)
            notes.append(Note(NoteKind.WARNING, place, f"`{key}` is unknown: midwatch keeps it as metadata"))
    return unknown


def arming_note(place: SourceLocation) -> Note:
    """The note that every file gets that may ask for restarts."""
    return Note(
        NoteKind.ARMING,
        place,
        "midwatch acts only on armed jobs; for all others it says what it would do",
        "Set `watch.mode: act` and arm the job: `midwatch arm JOB`, or `midwatch run --act`.",
    )


def _empty(node: YamlNode) -> bool:
    return plain(node) in (None, "", [], {})


def _value_text(node: YamlNode) -> str:
    if isinstance(node, YamlScalar):
        return f" ({node.value})"
    name = text_of(node, "class_name") if isinstance(node, YamlMapping) else ""
    return f" ({name})" if name else ""
