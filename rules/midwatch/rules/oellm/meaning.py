"""What an event of theirs is as a rule of ours: its role, its type, whether it passes by itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from midwatch.rules.errors import LocatedError
from midwatch.rules.expressions import Expression
from midwatch.rules.model import Mode, Note, NoteKind, Phase, Role, Rule, Severity
from midwatch.rules.oellm.actions import Deed
from midwatch.rules.oellm.events import LogEvent, PatternType
from midwatch.rules.oellm.patterns import NotTranslated, Translated, translate, translate_substring
from midwatch.rules.prefilter.chatter import CHATTER
from midwatch.rules.prefilter.workloads import progress

# Which types the handbook of oellm-autoexp calls restartable, and which not; of others nothing is known.
TRANSIENT: Mapping[str, bool] = {
    **dict.fromkeys(("hang", "deadlock", "nccl", "nccl_timeout", "nccl_collective"), True),
    **dict.fromkeys(("distributed_timeout", "communication", "watchdog_timeout"), True),
    **dict.fromkeys(("cancelled", "slurm_failure"), True),
    **dict.fromkeys(("oom", "numerical_instability", "exception", "torch"), False),
}
_USUAL_TYPE = {"stall": "hang", "timeout": "timeout"}
_FAILURE_MODES = ("crash", "stall", "timeout")
_STEPS = ("current_iteration", "checkpoint_iteration", "iteration", "current_step", "global_step")
_MEANT: Mapping[str, str] = {
    **dict.fromkeys(_STEPS, "step"),
    **dict.fromkeys(("total_iterations", "max_steps"), "total_steps"),
    **dict.fromkeys(("lm_loss", "train_loss"), "loss"),
    "allocation_size": "size",
}
_TELLS_OF_FAILURE = re.compile(
    r"fail|error|time.?out|time.?limit|cancel|kill|abort|out.of.memory|oom|crash|exclud|lost|inactive|"
    r"exit code",
    re.IGNORECASE,
)
_NOT_IN_NAMES = re.compile(r"[^a-z0-9_.-]+")


def rule_name(name: str, taken: Mapping[str, object]) -> str:
    """A name that our rules may have, and that is still free."""
    stem = _NOT_IN_NAMES.sub("_", name.lower()).strip("_.-")[:56] or "event"
    found, number = stem, 2
    while found in taken:
        found, number = f"{stem}_{number}", number + 1
    return found


def meant(field: str) -> str:
    """What a captured field is called by us: the step, its total and the loss have names of their own."""
    return _MEANT.get(field, field)


def rule_of(event: LogEvent, name: str, errors: list[LocatedError], notes: list[Note]) -> Rule | None:
    """The rule, or None where the pattern cannot be searched; then the mistake stands in `errors`."""
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
        captures={group: meant(wanted) for group, wanted in found.captures.items()},
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
        raise NotTranslated("there is no pattern", "Write what the line holds.")
    return (
        translate_substring(event.pattern, event.groups)
        if substring
        else translate(event.pattern, event.groups)
    )


def _role(event: LogEvent, notes: list[Note]) -> Role:
    kind, deeds = _text(event.metadata, "kind"), {action.deed for action in event.actions}
    if event.mode in _FAILURE_MODES or deeds & {Deed.RESTART, Deed.CANCEL}:
        return Role.CAUSE
    if kind in ("progress", "checkpoint"):
        # A saved checkpoint shows that the run goes on, also where its state calls it a success.
        return Role.PROGRESS
    if event.mode == "success":
        return Role.SUCCESS
    if Deed.FINISH not in deeds:
        return Role.CONTEXT
    reasons = " ".join(action.reason for action in event.actions)
    told = _TELLS_OF_FAILURE.search(f"{event.name} {event.pattern} {reasons}")
    failure = bool(told) or "error_type" in event.metadata
    what = (
        f"event {event.name!r} finishes the job and is taken for {'a failure' if failure else 'its success'}"
    )
    remedy = "" if failure else "If it tells of a failure, give it `metadata: {error_type: ..}`."
    notes.append(Note(NoteKind.CHANGED, event.location, what, remedy))
    return Role.CAUSE if failure else Role.SUCCESS


def _error_type(event: LogEvent, role: Role) -> str:
    said = _text(event.metadata, "error_type")
    if said or role is not Role.CAUSE:
        return said
    return _USUAL_TYPE.get(event.mode, "unknown")


def _severity(event: LogEvent, role: Role) -> Severity:
    said = _text(event.metadata, "severity")
    if said in list(Severity):
        return Severity(said)
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
        note(NoteKind.WARNING, f"the pattern has no group of its own for {', '.join(found.left_out)}")
    if "${" in event.pattern:
        note(NoteKind.WARNING, "the pattern holds an interpolation, which is searched as it stands")
    if rule.role is Role.CAUSE and (found_in := _healthy_line_in(rule.pattern)):
        remedy = "Narrow it, or include our preset of the same purpose instead."
        note(NoteKind.WARNING, f"the pattern also finds a healthy line, up to {found_in!r}", remedy)


def _healthy_line_in(pattern: str) -> str:
    """The last words of what the pattern finds in a healthy line, "" where it finds none."""
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
