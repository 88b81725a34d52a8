"""A whole configuration as a value: rules, silence limits, and the parts that a policy is made of."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from midwatch.rules.errors import LocatedError, RuleErrors
from midwatch.rules.files.rule_bundle import read_rule_bundle
from midwatch.rules.model import Bundle, Note, NoteKind, Phase, Rule, SourceLocation
from midwatch.rules.oellm.actions import Action, ActionKind
from midwatch.rules.oellm.composition import Composed, Files, GroupChoice, compose
from midwatch.rules.oellm.events import EventReader, LogEvent, PatternType, StateEvent
from midwatch.rules.oellm.generation import SchemaGeneration, generation_of, is_foreign, mappings, text_of
from midwatch.rules.oellm.meaning import rule_name, rule_of
from midwatch.rules.oellm.monitor import arming_note, note_keys, silence_of, termination_rule
from midwatch.streams.strict_yaml import YamlList, YamlMapping, plain, read_yaml

BUILT_IN = "default"
"""The preset of midwatch that replaces the signals built into their monitor."""


@dataclass(frozen=True, slots=True)
class Config:
    """The content of one file and of all files that it names.

    `names` holds the rule of each event, in the order of `events`; "" for an event that is no rule.
    `presets` are presets of midwatch that replace files which were not found. `policy` is the chosen restart
    policy, where its file was not found.
    """

    name: str
    root: str
    generation: SchemaGeneration
    content_hash: str
    rules: tuple[Rule, ...] = ()
    silence: Mapping[Phase, float] = field(default_factory=dict)
    any_line: bool = False
    presets: tuple[str, ...] = ()
    events: tuple[LogEvent, ...] = ()
    names: tuple[str, ...] = ()
    state_events: tuple[StateEvent, ...] = ()
    policies: YamlList | None = None
    policy: GroupChoice | None = None
    watches: bool = False
    files: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()


def read_config(root: str, files: Files) -> Config:
    """The configuration whose root is the file `root` of `files` (paths with `/`).

    Raises RuleErrors with every mistake of every file read.
    """
    errors: list[LocatedError] = []
    composed = compose(root, files, errors)
    generation = generation_of(composed.monitor, is_job=composed.is_job)
    config = Config(
        name=posixpath.basename(root).rpartition(".")[0],
        root=root,
        generation=generation,
        content_hash=_hash(composed, files),
        presets=tuple(choice.name for choice in composed.missing if choice.group == "monitoring"),
        policies=composed.policies,
        policy=next((choice for choice in composed.missing if choice.group == "restart"), None),
        watches=composed.monitor is not None,
        files=tuple(composed.read),
    )
    notes = [arming_note(SourceLocation(root)), *composed.notes]
    for choice in composed.missing:
        what = f"there is no file for the {choice.group} {choice.name!r}: midwatch's of that name replaces it"
        notes.append(Note(NoteKind.CHANGED, choice.location, what))
    if composed.monitor is not None:
        config = _with_monitor(config, composed.monitor, errors, notes)
    elif composed.policies is None and not composed.missing:
        notes.append(Note(NoteKind.WARNING, SourceLocation(root), "nothing in this file concerns the watch"))
    if errors:
        raise RuleErrors(errors)
    return replace(config, notes=tuple(dict.fromkeys(notes)))


def read_foreign_bundle(root: str, files: Mapping[str, bytes]) -> Bundle | None:
    """The bundle of a root of oellm-autoexp's format; None for any other. Raises RuleErrors."""
    tree = read_yaml(root, files[root], []) if root in files else None
    if tree is None or not is_foreign(tree):
        return None
    config = read_config(root, files)
    return bundle_of(config, {path: content for path, content in files.items() if path not in config.files})


def bundle_of(config: Config, shipped: Mapping[str, bytes]) -> Bundle:
    """The rules as a bundle, with `config.presets`. Raises RuleErrors where a preset does not exist."""
    names = {rule.name for rule in config.rules}
    rules: list[Rule] = []
    silence: dict[Phase, float] = {}
    for name in config.presets:
        preset = read_rule_bundle(name, shipped)
        rules += [rule for rule in preset.rules if rule.name not in names]
        silence.update(preset.silence)
        names |= {rule.name for rule in preset.rules}
    return Bundle(
        name=config.name,
        content_hash=config.content_hash,
        rules=(*rules, *config.rules),
        silence=silence | dict(config.silence),
        description=description_of(config),
        files=config.files,
        any_line=config.any_line,
        notes=config.notes,
    )


def overridden(config: Config, shipped: Mapping[str, bytes]) -> tuple[str, ...]:
    """Names of rules in `config.presets` that the file replaces by a rule of the same name."""
    in_presets = {rule.name for name in config.presets for rule in read_rule_bundle(name, shipped).rules}
    return tuple(rule.name for rule in config.rules if rule.name in in_presets)


def description_of(config: Config) -> str:
    """One line on where the rules come from."""
    return f"oellm-autoexp configuration of generation {config.generation.value}"


def _with_monitor(
    config: Config, monitor: YamlMapping, errors: list[LocatedError], notes: list[Note]
) -> Config:
    generation = config.generation
    reader = EventReader(generation, errors, notes)
    metadata = _job_metadata(monitor) | note_keys(monitor, generation, notes)
    events = tuple(
        replace(event, metadata=metadata | dict(event.metadata)) for event in reader.log_events(monitor)
    )
    states = reader.state_events(monitor)
    rules: dict[str, Rule] = {}
    names = tuple(_add_rule(event, rules, errors, notes) for event in events)
    termination = termination_rule(monitor, rule_name("termination_string", rules))
    if termination is not None:
        rules[termination.name] = termination
    for label, actions in [(e.name, e.actions) for e in events] + [(s.name, s.actions) for s in states]:
        _note_actions(label, actions, notes)
    presets = config.presets
    if not events and not presets and _has_built_ins(monitor, generation):
        presets = (BUILT_IN,)
        what = "this monitor has no signals but three built-in ones: midwatch's preset replaces them"
        notes.append(Note(NoteKind.CHANGED, monitor.location, what))
    silence = silence_of(monitor, generation, events, notes)
    return replace(
        config,
        rules=tuple(rules.values()),
        silence=silence.limits(),
        any_line=silence.seconds is not None,
        presets=presets,
        events=events,
        names=names,
        state_events=states,
    )


def _add_rule(event: LogEvent, rules: dict[str, Rule], errors: list[LocatedError], notes: list[Note]) -> str:
    """The name of the rule that the event becomes; "" if it is no rule."""
    if event.pattern_type is PatternType.INACTIVITY:
        return ""
    name = rule_name(event.name, rules)
    if name != event.name:
        notes.append(
            Note(NoteKind.CHANGED, event.location, f"event {event.name!r} becomes the rule {name!r}")
        )
    rule = rule_of(event, name, errors, notes)
    if rule is not None:
        rules[name] = rule
    return name if rule is not None else ""


def _job_metadata(monitor: YamlMapping) -> dict[str, object]:
    entry = monitor.entries.get("metadata")
    metadata = plain(entry[1]) if entry is not None else None
    return metadata if isinstance(metadata, dict) else {}


def _has_built_ins(monitor: YamlMapping, generation: SchemaGeneration) -> bool:
    named = text_of(monitor, "class_name") == "SlurmLogMonitor"
    return named and generation is SchemaGeneration.STATES and not any(mappings(monitor, "log_signals"))


def _note_actions(event: str, actions: tuple[Action, ...], notes: list[Note]) -> None:
    for action in actions:
        if action.kind is ActionKind.REFUSED:
            detail = f": {action.detail[:200]}" if action.detail else ""
            what = f"{action.class_name or 'an action'} of event {event!r} is not executed{detail}"
            remedy = "A file of rules never makes midwatch run, write or start anything."
            notes.append(Note(NoteKind.NOT_EXECUTED, action.location, what, remedy))


def _hash(composed: Composed, files: Files) -> str:
    digest = hashlib.sha256(composed.root.encode())
    for path in sorted(set(composed.read)):
        digest.update(f"\0{path}\0{len(files[path])}\0".encode())
        digest.update(files[path])
    return digest.hexdigest()
