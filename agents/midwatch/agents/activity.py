"""One line for every transition and step of a rescue: time, job, old → new, action, reason. Pure.

The executor, the watcher, `up`, the demo and `why` all print these lines. A person can therefore find the
same words in every log. Times are UTC with milliseconds. Text from a job is escaped first, because it may
hold control characters that a terminal obeys.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from midwatch.streams.records import (
    CheckpointChoice,
    Command,
    Decision,
    Finding,
    Forwarded,
    Incident,
    InForce,
    Outcome,
    PersonAct,
    RefusedRules,
    SchedulerFact,
    SpecEvent,
)
from midwatch.streams.records.incidents import RESUMED

_LONGEST = 500
_CLOCKS_MS = 5000  # a file system's clock and the broker's differ by so much at most
_CALENDAR_MS = 60_000_000_000_000  # some hundred years short of the year 10000, and of the year 0


def line(
    record: object, at_ms: int, *, command: Command | None = None, last_step: int | None = None
) -> str | None:
    """The line of a record; None for a kind that is no step, such as heartbeat, hits or tick.

    Give the `command` of an outcome if you have it: only the command has the number of the restart.
    `last_step`: the last one of the attempt that the outcome replaced. It tells how many steps are lost.
    """
    if isinstance(record, Forwarded):
        record = record.record
    if isinstance(record, Outcome):
        return f"{moment(at_ms)} {_outcome(record, at_ms, command, last_step)}"
    line_of = _LINES.get(type(record))
    return f"{moment(at_ms)} {line_of(record)}" if line_of else None


def moment(at_ms: int) -> str:
    """Milliseconds since 1970 as a UTC time that sorts as text. Beyond any calendar: the number."""
    if abs(at_ms) > _CALENDAR_MS:
        return f"({at_ms} ms)"
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{at_ms % 1000:03d}Z"


def printable(text: str, longest: int = _LONGEST) -> str:
    """Cuts the text to `longest` characters, then escapes every character that is not printable."""
    if len(text) > longest:
        text = f"{text[:longest]}…"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def count(number: int, limit: int | None) -> str:
    """The number of a restart and its limit, as `attempt 2 of 3`."""
    return f"attempt {number} of {'any number' if limit is None else limit}"


def _join(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def _because(reason: str) -> str:
    return f"because {printable(reason)}" if reason else ""


def _ids(old: str, new: str) -> str:
    if not old and not new:
        return ""
    return f"id {printable(old) or 'none'} → {printable(new) or 'none'}"


def _scheduler(fact: SchedulerFact) -> str:
    if fact.saved is not None and not fact.ended:
        return f"{fact.job}: the checkpoint of {fact.saved.unit} {fact.saved.number} is complete"
    status = "" if fact.exit_code is None else f"exit code {fact.exit_code}"
    if fact.signal:
        status = f"signal {fact.signal}"
    return f"{fact.job}: " + _join(
        f"{printable(fact.old) or 'unseen'} → {printable(fact.new)}",
        f"id {printable(fact.native_id)}",
        status,
        f"by {printable(fact.by_person)}" if fact.by_person else "",
        _because(fact.reason),
    )


def _incident(incident: Incident) -> str:
    verdict = incident.verdict
    kind = f"{verdict.mode or 'end'} by {verdict.error_type}" if verdict.state == "failed" else verdict.state
    place = f" at {printable(verdict.root_file)}:{verdict.root_line_number}" if verdict.root_file else ""
    if incident.state == "suspected" and incident.evidence:  # no verdict yet: show the line that matched
        hit = incident.evidence[0]
        kind, place = printable(hit.error_type), f" at {printable(hit.line.path)}:{hit.line.number}"
    return f"{incident.job}: " + _join(
        f"incident → {incident.state}",
        f"attempt {incident.attempt}",
        f"{kind}{place}",
        f"revision {incident.revision}",
    )


def _finding(finding: Finding) -> str:
    if finding.kind == RESUMED:
        return f"{finding.job}: attempt {finding.attempt} {printable(finding.detail)}"
    state = "open" if finding.open else "clear"
    return f"{finding.job}: " + _join(
        f"finding {printable(finding.kind)} → {state}",
        f"attempt {finding.attempt}",
        printable(finding.detail),
    )


def _decision(decision: Decision) -> str:
    number = count(decision.restart_number, decision.restart_limit) if decision.action == "restart" else ""
    verb = "decided" if decision.armed else "would decide (observing)"
    return f"{decision.job}: " + _join(
        f"{verb} → {decision.action}", number, f"policy {decision.policy}", _because(decision.reason)
    )


def _command(command: Command) -> str:
    number = count(command.restart_number, command.restart_limit) if command.action == "restart" else ""
    return f"{command.job}: " + _join(
        f"command → {command.action}", number, f"command {command.id[:12]}", _because(command.reason)
    )


def _outcome(outcome: Outcome, at_ms: int, command: Command | None, last_step: int | None) -> str:
    number = ""
    if command is not None and command.action == "restart":
        number = count(command.restart_number, command.restart_limit)
    return f"{outcome.job}: " + _join(
        f"{outcome.action} → {outcome.state}",
        number,
        _ids(outcome.old_native_id, outcome.new_native_id),
        checkpoint_phrase(outcome, at_ms, last_step),
        f"command {outcome.command[:12]}",
        _because(outcome.reason),
    )


def checkpoint_phrase(outcome: Outcome, at_ms: int, last_step: int | None = None) -> str:
    """Which checkpoint the outcome names, its age and the steps after it; "" if it names none.

    One that no path names was only seen there. `last_step` is of the attempt before. Steps are lost only if
    the start resumes from this checkpoint, which its first step shows later.
    """
    step = outcome.checkpoint_step
    if step is None:
        return ""
    number = f"{outcome.checkpoint_unit} {step}"
    phrase = (
        f"told to load the checkpoint of {number}" if outcome.checkpoint else f"latest checkpoint: {number}"
    )
    choice = CheckpointChoice(
        step, outcome.checkpoint, outcome.checkpoint_unit, outcome.checkpoint_written_ms
    )
    return _join(phrase, _age(choice, at_ms, "before"), _lost(choice, last_step))


def saved_phrase(saved: CheckpointChoice, ended_ms: int | None, last_step: int | None) -> str:
    """The newest checkpoint at an end: its number, its age then, and the steps after it."""
    age = "" if ended_ms is None else _age(saved, ended_ms, "before the end")
    if ended_ms is not None and saved.written_ms > ended_ms + _CLOCKS_MS:  # a later attempt's, or a person's
        age = "written after the end"
    return _join(f"of {saved.unit} {saved.number}", age, _lost(saved, last_step))


def _age(checkpoint: CheckpointChoice, at_ms: int, before: str) -> str:
    if not checkpoint.written_ms:
        return ""
    return f"written {span(max(at_ms - checkpoint.written_ms, 0) // 1000)} {before}"


def _lost(checkpoint: CheckpointChoice, last_step: int | None) -> str:
    """How many steps are lost; "" where that is unknown: an epoch cannot be compared with a step."""
    if checkpoint.unit != "step" or last_step is None or last_step < checkpoint.number:
        return ""
    lost = last_step - checkpoint.number
    return f"{lost} step{'' if lost == 1 else 's'} lost"


def span(seconds: int) -> str:
    """A duration in whole seconds, minutes or hours."""
    if seconds < 120:
        return f"{seconds} s"
    minutes = seconds // 60
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h"


def _act(act: PersonAct) -> str:
    sets = [f"{printable(k)}: {printable(v)}" for k, v in act.parameters.items() if k.startswith("set ")]
    return f"{act.job}: {_join(f'{printable(act.who)} → {printable(act.act)}', *sets)}"


def _spec(spec: SpecEvent) -> str:
    mode = "armed" if spec.armed else "observed"
    return f"{spec.job}: " + _join(f"spec → {spec.spec[:12]}", f"policy {spec.policy}", mode)


def _in_force(record: InForce) -> str:
    source = "pushed" if record.by == "push" else "read from files"
    return f"rules: bundle {record.bundle[:12]} → in force, {source} by {printable(record.who)}"


def _refused(record: RefusedRules) -> str:
    change = "push" if record.by == "push" else "edit"
    first = printable(record.errors[0]) if record.errors else ""
    more = f"and {len(record.errors) - 1} more" if len(record.errors) > 1 else ""
    return "rules: " + _join(f"{change} → refused, the last good bundle stays", _because(first), more)


_LINES: dict[type, Callable[[Any], str]] = {
    SchedulerFact: _scheduler,
    Incident: _incident,
    Finding: _finding,
    Decision: _decision,
    Command: _command,
    PersonAct: _act,
    SpecEvent: _spec,
    InForce: _in_force,
    RefusedRules: _refused,
}
