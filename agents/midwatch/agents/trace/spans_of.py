"""The spans and log events of one record, with the record's own times. Pure.

One incident is one trace. Ids come from the names of the incident and its commands, so the same record always
gives the same spans, whoever reads it and whenever.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from midwatch.agents import activity
from midwatch.streams.records import Command, Decision, Finding, Forwarded, Hit, Incident, Outcome
from midwatch.streams.records.identity import JobName, job_name, native_id
from midwatch.streams.telemetry import names as n
from midwatch.streams.telemetry import trace_ids as ids
from midwatch.streams.telemetry.names import SpanName
from midwatch.streams.telemetry.spans import IncidentEvent, SpanRecord

Ends = Mapping[int, int]
"""When spans of this trace that were exported before have ended (ms), by the id of each."""
_FIRST = 1
"""The revision of an incident's first verdict. A repeated record must give what it gave before."""


@dataclass(frozen=True, slots=True)
class Traced:
    """What one record gives. `place` names the trace, or the job of a finding; it is never empty."""

    place: str
    spans: tuple[SpanRecord, ...] = ()
    event: IncidentEvent | None = None
    event_id: int = 0


def place_of(record: object) -> str:
    """The trace to which a record belongs: its incident, or the job of a finding; "" for any other record."""
    if isinstance(record, Forwarded):
        record = record.record
        if isinstance(record, Incident | Finding):  # decide's copy for the messages: `incidents` holds it too
            return ""
    match record:
        case Incident():
            return record.id if record.state == "settled" else ""
        case Decision() | Command() | Outcome():
            return record.incident
        case Finding():
            return record.job
        case _:
            return ""


def traced(record: object, at_ms: int, ends: Ends) -> Traced | None:
    """The spans and the log event of a record that Kafka got at `at_ms`; None for any other record."""
    if not (place := place_of(record)):
        return None
    if isinstance(record, Forwarded):
        record = record.record
    if isinstance(record, Incident):
        return _incident(record)
    if isinstance(record, Outcome):
        return _outcome(record, at_ms, ends)
    if isinstance(record, Decision):
        return _decision(record, at_ms)
    return _command(record, at_ms) if isinstance(record, Command) else _finding(record, place)


def _incident(incident: Incident) -> Traced:
    root, settled_ms = ids.incident_span(incident.id), incident.settled_ms or incident.opened_ms
    verdict, about = incident.verdict, _about_incident(incident)
    failed = verdict.error_type if verdict.state == "failed" else ""
    event = IncidentEvent(
        n.INCIDENT_EVENT,
        n.INCIDENT_SPAN.service,
        settled_ms,
        "ERROR" if failed else "INFO",
        _line(incident, settled_ms),
        about,
        ids.trace_id(incident.id),
        root,
    )
    event_id = ids.span_id(incident.id, "event", incident.revision)
    if incident.revision > _FIRST:
        span = ids.span_id(incident.id, "revision", incident.revision)
        again = _span(
            n.REVISION_SPAN, incident.id, (span, root), (settled_ms, settled_ms), about, failed=failed
        )
        return Traced(incident.id, (again,), event, event_id)
    hit = incident.evidence[0] if incident.evidence and verdict.rule else None
    spans = []
    begin_ms = min(incident.opened_ms, settled_ms)
    if hit is not None and incident.line_ms is not None:
        printed_ms = min(int(hit.line.time * 1000), incident.line_ms)
        begin_ms = min(begin_ms, printed_ms)
        of_line = _about_line(hit, incident)
        spans.append(_of(n.LINE_SPAN, incident.id, (printed_ms, incident.line_ms), of_line))
        matched_ms = max(incident.line_ms, incident.opened_ms)
        of_hit = {n.VERDICT_RULE: hit.rule, n.ERROR_TYPE: hit.error_type, n.BUNDLE: verdict.bundle}
        spans.append(_of(n.HIT_SPAN, incident.id, (incident.line_ms, matched_ms), of_hit))
    if incident.ended_ms is not None:
        spans.append(_of(n.SETTLE_SPAN, incident.id, (min(incident.ended_ms, settled_ms), settled_ms), {}))
        begin_ms = min(begin_ms, incident.ended_ms)
    first = _span(n.INCIDENT_SPAN, incident.id, (root, 0), (begin_ms, settled_ms), about, failed=failed)
    return Traced(incident.id, (first, *spans), event, event_id)


def _decision(decision: Decision, at_ms: int) -> Traced:
    incident = decision.incident
    about = _job(decision.job) | {
        n.ATTEMPT: decision.attempt,
        n.INCIDENT: incident,
        n.REVISION: decision.revision,
        n.DECISION: decision.action,
        n.DECISION_REASON: activity.printable(decision.reason),
        n.POLICY: activity.printable(decision.policy),
        n.ARMED: decision.armed,
    }
    span = ids.decision_span(incident, decision.command, decision.revision, decision.at_ms, decision.action)
    event = IncidentEvent(
        n.DECISION_EVENT,
        n.DECISION_SPAN.service,
        at_ms,
        "INFO",
        _line(decision, at_ms),
        about,
        ids.trace_id(incident),
        span,
    )
    times = (min(decision.at_ms, at_ms), at_ms)
    made = _span(n.DECISION_SPAN, incident, (span, ids.incident_span(incident)), times, about)
    return Traced(incident, (made,), event, span)


def _command(command: Command, at_ms: int) -> Traced:
    about = _job(command.job) | {
        n.SYSTEM: "kafka",
        n.OPERATION: "send",
        n.ATTEMPT: command.attempt,
        n.COMMAND: command.id,
        n.DECISION: command.action,
    }
    parent = ids.decision_span(command.incident, command.id, 0, 0, "")
    span = ids.command_span(command.incident, command.id)
    return Traced(
        command.incident, (_span(n.COMMAND_SPAN, command.incident, (span, parent), (at_ms, at_ms), about),)
    )


def _outcome(outcome: Outcome, at_ms: int, ends: Ends) -> Traced:
    incident, sent = outcome.incident, ids.command_span(outcome.incident, outcome.command)
    about = _job(outcome.job) | {
        n.ATTEMPT: outcome.attempt,
        n.COMMAND: outcome.command,
        n.COMMAND_STATE: outcome.state,
        n.DECISION: outcome.action,
        n.SUCCESSOR: outcome.new_native_id,
    }
    if outcome.checkpoint_step is not None:
        about[n.CHECKPOINT_STEP] = outcome.checkpoint_step
    if outcome.new_incarnation.startswith("slurm:"):
        about[n.SLURM_JOB] = outcome.new_native_id
    failed = "" if outcome.state in ("accepted", "done") else activity.printable(outcome.reason)
    spans, answer = [], ids.span_id(incident, "answer", outcome.command)
    if answer not in ends:
        first = (min(ends.get(sent, at_ms), at_ms), at_ms)
        refused = failed if outcome.state != "failed" else ""
        spans.append(_span(n.ANSWER_SPAN, incident, (answer, sent), first, about, failed=refused))
    if outcome.state not in ("accepted", "refused"):
        span = ids.effect_span(incident, outcome.command)
        whole = (min(ends.get(answer, at_ms), at_ms), at_ms)
        spans.append(_span(n.EFFECT_SPAN, incident, (span, sent), whole, about, failed=failed))
    event = IncidentEvent(
        n.OUTCOME_EVENT,
        n.EFFECT_SPAN.service,
        at_ms,
        "ERROR" if failed else "INFO",
        _line(outcome, at_ms),
        about,
        ids.trace_id(incident),
        spans[-1].span if spans else ids.effect_span(incident, outcome.command),
    )
    return Traced(
        incident, tuple(spans), event, ids.span_id(incident, "event", outcome.command, outcome.state)
    )


def _finding(finding: Any, place: str) -> Traced:
    kind, _, node = finding.kind.partition(":")
    about = _job(finding.job) | {n.ATTEMPT: finding.attempt, n.KIND: kind}
    if node:
        about[n.HOST] = node
    event = IncidentEvent(
        n.FINDING_EVENT,
        n.INCIDENT_SPAN.service,
        finding.at_ms,
        "WARN" if finding.open else "INFO",
        _line(finding, finding.at_ms),
        about,
    )
    what = (finding.attempt, finding.kind, int(finding.open), finding.at_ms)
    return Traced(place, event=event, event_id=ids.span_id(place, "finding", *what))


def _about_incident(incident: Incident) -> dict[str, str | int | bool]:
    verdict = incident.verdict
    about = _job(incident.job) | {
        n.ATTEMPT: incident.attempt,
        n.INCARNATION: incident.incarnation,
        n.INCIDENT: incident.id,
        n.REVISION: incident.revision,
        n.ERROR_TYPE: verdict.error_type,
        n.FAMILY: verdict.family,
        n.MODE: verdict.mode or "",
        n.VERDICT_RULE: verdict.rule,
        n.BUNDLE: verdict.bundle,
        n.HOST: verdict.node,
    }
    if verdict.transient is not None:
        about[n.TRANSIENT] = verdict.transient
    if verdict.rank is not None:
        about[n.RANK] = verdict.rank
    if verdict.step is not None:
        about[n.ITERATION] = verdict.step
    if incident.incarnation.startswith("slurm:"):
        about[n.SLURM_JOB] = native_id(incident.incarnation)
        about[n.SLURM_CLUSTER] = _name(incident.job).cluster
    if verdict.root_file:
        about[n.FILE] = activity.printable(verdict.root_file)
        about[n.LINE_TEXT] = activity.printable(verdict.root_line)
    if verdict.root_line_number is not None:
        about[n.LINE] = verdict.root_line_number
    return {name: value for name, value in about.items() if value != ""}


def _about_line(hit: Hit, incident: Incident) -> dict[str, str | int | bool]:
    about: dict[str, str | int | bool] = {
        n.FILE: activity.printable(hit.line.path),
        n.LINE: hit.line.number,
        n.LINE_TEXT: activity.printable(hit.line.text),
        n.HOST: hit.line.node or incident.verdict.node,
    }
    if hit.line.rank is not None:
        about[n.RANK] = hit.line.rank
    return about


def _job(job: str) -> dict[str, str | int | bool]:
    return {n.RUN: job}


def _name(job: str) -> JobName:
    return job_name(job)


def _line(record: object, at_ms: int) -> str:
    return activity.line(record, at_ms) or ""


def _of(
    kind: SpanName, incident: str, times: tuple[int, int], about: Mapping[str, str | int | bool]
) -> SpanRecord:
    both = ids.span_id(incident, kind.name), ids.incident_span(incident)
    return _span(kind, incident, both, times, about)


def _span(
    kind: SpanName,
    incident: str,
    own_and_parent: tuple[int, int],
    times: tuple[int, int],
    about: Mapping[str, str | int | bool],
    *,
    failed: str = "",
) -> SpanRecord:
    return SpanRecord(kind, ids.trace_id(incident), *own_and_parent, *times, about, failed=failed)
