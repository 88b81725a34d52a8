"""Turns an event into a rule: its role, its error type, and whether the failure is transient."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from midwatch.rules.errors import LocatedError
from midwatch.rules.expressions import Expression
from midwatch.rules.model import Mode, Note, NoteKind, Phase, Role, Rule, Severity
from midwatch.rules.oellm.actions import ActionKind
from midwatch.rules.oellm.events import LogEvent, PatternType
from midwatch.rules.oellm.patterns import NotTranslated, Translated, translate, translate_substring
from midwatch.rules.prefilter.chatter import CHATTER
from midwatch.rules.prefilter.workloads import progress

# The handbook of oellm-autoexp calls these types restartable or not. It says nothing of others.
TRANSIENT: Mapping[str, bool] = {
    **dict.fromkeys(("hang", "deadlock", "nccl", "nccl_timeout", "nccl_collective"), True),
    **dict.fromkeys(("distributed_timeout", "communication", "watchdog_timeout"), True),
    **dict.fromkeys(("cancelled", "slurm_failure"), True),
    **dict.fromkeys(("oom", "numerical_instability", "exception", "torch"), False),
}
_DEFAULT_TYPE = {"stall": "hang", "timeout": "timeout"}
_FAILURE_MODES = ("crash", "stall", "timeout")
_STEPS = ("current_iteration", "checkpoint_iteration", "iteration", "current_step", "global_step")
_CAPTURE_NAMES: Mapping[str, str] = {
    **dict.fromkeys(_STEPS, "step"),
    **dict.fromkeys(("total_iterations", "max_steps"), "total_steps"),
    **dict.fromkeys(("lm_loss", "train_loss"), "loss"),
    "allocation_size": "size",
}
_FAILURE_WORDS = re.compile(
    r"fail|error|time.?out|time.?limit|cancel|kill|abort|out.of.memory|oom|crash|exclud|lost|inactive|"
    r"exit code",
    re.IGNORECASE,
)
_NOT_IN_NAMES = re.compile(r"[^a-z0-9_.-]+")


def rule_name(name: str, taken: Mapping[str, object]) -> str:
    """A name for the rule that midwatch accepts and that is not yet `taken`."""
    stem = _NOT_IN_NAMES.sub("_", name.lower()).strip("_.-")[:56] or "event"
    found, number = stem, 2
    while found in taken:
        found, number = f"{stem}_{number}", number + 1
    return found


def capture_name(field: str) -> str:
    """Midwatch's name of a captured field. Step, total steps, loss and size have fixed names."""
    return _CAPTURE_NAMES.get(field, field)


def rule_of(event: LogEvent, name: str, errors: list[LocatedError], notes: list[Note]) -> Rule | None:
    """The rule, or None with a mistake in `errors` where the pattern cannot be searched."""
    try:
        found = _translated(event)
    except NotTranslated as error:
        what = f"event {event.name!r}: {error}"
        errors.append(LocatedError(event.pattern_location, what, error.remedy))
        return None
    role = _role(event, notes)
    kind = _error_type(event, role)
    rule = Rule(
        name=name,
        pattern=found.pattern,
        error_type=kind,
        subsystem=_text(event.metadata, "subsystem"),
        severity=_severity(event, role),
        role=role,
        transient=TRANSIENT.get(kind) if role is Role.CAUSE else None,
        captures={group: capture_name(field) for group, field in found.captures.items()},
        metadata=event.metadata,
        phase=Phase.TRAINING if role is Role.PROGRESS else None,
        mode=Mode(event.mode) if role is Role.CAUSE and event.mode in _FAILURE_MODES else None,
        location=event.location,
    )
    _warn(event, rule, found, notes)
    return rule


def _translated(event: LogEvent) -> Translated:
    substring = event.pattern_type is PatternType.SUBSTRING
    if not event.pattern:
        raise NotTranslated("there is no pattern", "Write a text that the line holds.")
    return (
        translate_substring(event.pattern, event.groups)
        if substring
        else translate(event.pattern, event.groups)
    )


def _role(event: LogEvent, notes: list[Note]) -> Role:
    kind, requests = _text(event.metadata, "kind"), {action.kind for action in event.actions}
    if event.mode in _FAILURE_MODES or requests & {ActionKind.RESTART, ActionKind.CANCEL}:
        return Role.CAUSE
    if kind in ("progress", "checkpoint"):
        # A saved checkpoint shows that the run goes on, even where the event's state is a success.
        return Role.PROGRESS
    if event.mode == "success":
        return Role.SUCCESS
    if ActionKind.FINISH not in requests:
        return Role.CONTEXT
    reasons = " ".join(action.reason for action in event.actions)
    failure_word = _FAILURE_WORDS.search(f"{event.name} {event.pattern} {reasons}")
    failure = bool(failure_word) or "error_type" in event.metadata
    reading = "a failure" if failure else "a success"
    what = f"event {event.name!r} finishes the job: midwatch reads it as {reading}"
    remedy = "" if failure else "If it is a failure, give it `metadata: {error_type: ..}`."
    notes.append(Note(NoteKind.CHANGED, event.location, what, remedy))
    return Role.CAUSE if failure else Role.SUCCESS


def _error_type(event: LogEvent, role: Role) -> str:
    error_type = _text(event.metadata, "error_type")
    if error_type or role is not Role.CAUSE:
        return error_type
    return _DEFAULT_TYPE.get(event.mode, "unknown")


def _severity(event: LogEvent, role: Role) -> Severity:
    severity = _text(event.metadata, "severity")
    if severity in list(Severity):
        return Severity(severity)
    return Severity.ERROR if role is Role.CAUSE else Severity.INFO


def _text(metadata: Mapping[str, object], key: str) -> str:
    value = metadata.get(key)
    return value if isinstance(value, str) else ""


def _warn(event: LogEvent, rule: Rule, found: Translated, notes: list[Note]) -> None:
    place = event.pattern_location

    def note(kind: NoteKind, what: str, remedy: str = "") -> None:
        notes.append(Note(kind, place, f"event {event.name!r}: {what}", remedy))

    if found.differs:
        note(NoteKind.CHANGED, found.differs)
    if found.left_out:
        note(NoteKind.WARNING, f"the pattern has no separate group for {', '.join(found.left_out)}")
    if "${" in event.pattern:
        note(NoteKind.WARNING, "the pattern holds an interpolation, which midwatch does not evaluate")
    if rule.role is Role.CAUSE and (found_in := _healthy_line_in(rule.pattern)):
        remedy = "Narrow it, or include midwatch's preset of the same purpose instead."
        note(NoteKind.WARNING, f"the pattern also matches a healthy line, up to {found_in!r}", remedy)


def _healthy_line_in(pattern: str) -> str:
    """The last words of the pattern's match in a healthy line, "" where it matches none."""
    expression = Expression(pattern)
    for line in _healthy():
        spans = expression.search(line)
        if spans is not None:
            start, end = spans[0]
            return line[max(start, end - 60) : end].decode("utf-8", "replace")
    return ""


@cache
def _healthy() -> tuple[bytes, ...]:
    return tuple((progress(1 << 14) + CHATTER).split(b"\n"))
