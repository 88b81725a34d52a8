"""The keys of a monitor or a job beside its events: how long it may be silent, and what is moot here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from midwatch.rules.expressions import quote
from midwatch.rules.model import Note, NoteKind, Phase, Role, Rule, Severity, SourceLocation
from midwatch.rules.oellm.events import LogEvent, PatternType
from midwatch.rules.oellm.generation import SchemaGeneration, text_of
from midwatch.streams.strict_yaml import YamlMapping, YamlNode, YamlScalar, plain

USUAL_INACTIVITY = 900.0
USUAL_POLL = 60.0
NEVER = 7 * 86400.0
"""A silence limit that stands for "off"."""

_LINES_COME = "lines are read as they are written"
_MOOT = {
    "poll_interval_seconds": f"nothing is polled: {_LINES_COME}",
    "check_interval_seconds": f"nothing is checked at intervals: {_LINES_COME}",
    "start_condition_interval_seconds": "no start is delayed here",
    "debug_sync": "there is no second thread that could be out of step",
    "state_whitelist": "the scheduler's states are all followed",
    "array_len": "each task of an array is a job of its own here",
    "log_to_file": "where a job writes is the launch's business",
    "extra_args": "how a job is started is said to `midwatch run`",
    "array_args": "how a job is started is said to `midwatch run`",
    "command": "how a job is started is said to `midwatch run`",
    "slurm": "how a job is started is said to `midwatch run`",
    "name": "a job is named by `midwatch run --job`, or by its native id",
    **dict.fromkeys(
        ("log_path_template", "output_paths", "log_path", "log_path_current", "base_output_dir"),
        "which files are followed is said to `midwatch run --log` or `midwatch ship`",
    ),
    **dict.fromkeys(("config_path", "config_path_current"), "the launch writes it, nothing here reads it"),
}
_NOT_EXECUTED = {
    "termination_command": "the end is the scheduler's word, no command is asked",
    "start_condition_cmd": "a restart waits for nothing but the old attempt's end",
    "start_condition": "a restart waits for nothing but the old attempt's end",
    "cancel_condition": "no file, command or other job is asked whether this one should be cancelled",
    "finish_condition": "no file, command or other job is asked whether this one is done",
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
    """How long nothing new may be written before the job counts as stalled; None: for ever."""

    seconds: float | None

    def limits(self) -> Mapping[Phase, float]:
        """The same limit in every phase, since theirs knows none."""
        return dict.fromkeys(Phase, self.seconds if self.seconds is not None else NEVER)


def silence_of(
    monitor: YamlMapping, generation: SchemaGeneration, events: tuple[LogEvent, ...], notes: list[Note]
) -> Silence:
    """The limit of `inactivity_threshold_seconds`, or in the last generation of the inactivity events."""
    if text_of(monitor, "class_name") == "NullMonitor":
        what = "NullMonitor watches nothing, so no silence is too long"
        notes.append(Note(NoteKind.CHANGED, monitor.location, what))
        return Silence(None)
    if generation is SchemaGeneration.TRANSITIONS:
        poll = _seconds(monitor, "poll_interval_seconds", USUAL_POLL, notes) or USUAL_POLL
        waits = [
            max(event.polls * poll, event.seconds)
            for event in events
            if event.pattern_type is PatternType.INACTIVITY
        ]
        return Silence(min(waits, default=None))
    return Silence(_seconds(monitor, "inactivity_threshold_seconds", USUAL_INACTIVITY, notes))


def _seconds(monitor: YamlMapping, key: str, usual: float, notes: list[Note]) -> float | None:
    entry = monitor.entries.get(key)
    if entry is None:
        return usual
    value = entry[1].value if isinstance(entry[1], YamlScalar) else None
    if value is None or value == 0:
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
        return float(value)
    what = f"`{key}` is {value!r}, which only the launch can evaluate; {usual:g} s is taken"
    notes.append(Note(NoteKind.WARNING, entry[1].location, what, "Write the number of seconds."))
    return usual


def termination_rule(monitor: YamlMapping, name: str) -> Rule | None:
    """The text by which a job says that it is done."""
    text = text_of(monitor, "termination_string")
    if not text:
        return None
    place = monitor.entries["termination_string"][1].location
    return Rule(name=name, pattern=quote(text), role=Role.SUCCESS, severity=Severity.INFO, location=place)


def note_keys(monitor: YamlMapping, generation: SchemaGeneration, notes: list[Note]) -> dict[str, object]:
    """Says what of the other keys has no effect; keys that nobody knows come back, to be kept as metadata."""
    unknown: dict[str, object] = {}
    for key, (place, node) in monitor.entries.items():
        counts = generation is SchemaGeneration.TRANSITIONS and key == "poll_interval_seconds"
        if key in _READ_ELSEWHERE or counts or _empty(node):
            continue
        if key in _MOOT:
            notes.append(Note(NoteKind.MOOT, place, f"`{key}`: {_MOOT[key]}"))
        elif key in _NOT_EXECUTED:
            notes.append(Note(NoteKind.NOT_EXECUTED, place, f"`{key}`{_what(node)}: {_NOT_EXECUTED[key]}"))
        else:
            unknown[key] = plain(node)
            notes.append(Note(NoteKind.WARNING, place, f"`{key}` is not known and kept as metadata"))
    return unknown


def arming_note(place: SourceLocation) -> Note:
    """What has to be said of every file that may ask for restarts."""
    return Note(
        NoteKind.ARMING,
        place,
        "nothing acts until it is armed: the watch only says what it would do",
        "Set `watch.mode: act` and arm the job: `midwatch arm JOB`, or `midwatch run --act`.",
    )


def _empty(node: YamlNode) -> bool:
    return plain(node) in (None, "", [], {})


def _what(node: YamlNode) -> str:
    if isinstance(node, YamlScalar):
        return f" ({node.value})"
    name = text_of(node, "class_name") if isinstance(node, YamlMapping) else ""
    return f" ({name})" if name else ""
