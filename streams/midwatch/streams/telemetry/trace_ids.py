"""Ids of traces and spans, made from the names of incidents and commands. Pure: the same name, the same id.

So each process knows the ids of the others' spans, and a span that is exported again after a crash has its
old id. The form of a `traceparent` is that of W3C Trace Context, level 1.
"""

from __future__ import annotations

import hashlib

import msgspec

TRACEPARENT = "traceparent"
"""The header of records in Kafka."""


def trace_id(incident: str) -> int:
    """The trace of an incident: 128 bits, never 0."""
    return _number(16, "trace", incident)


def span_id(incident: str, *words: str | int) -> int:
    """A span of the incident's trace: 64 bits, never 0. `words` tell it from the others."""
    return _number(8, "span", incident, *words)


def traceparent(incident: str, span: int) -> str:
    """The header's value for a sampled trace."""
    return f"00-{trace_id(incident):032x}-{span:016x}-01"


def incident_span(incident: str) -> int:
    """The root span of an incident."""
    return span_id(incident, "incident")


def decision_span(incident: str, command: str, revision: int, at_ms: int, action: str) -> int:
    """A decision. The command that it sent names it, else its revision, time and action do."""
    if command:
        return span_id(incident, "decision", command)
    return span_id(incident, "decision", revision, at_ms, action)


def command_span(incident: str, command: str) -> int:
    """The sending of a command; its parent is the decision that sent it."""
    return span_id(incident, "command", command)


def effect_span(incident: str, command: str) -> int:
    """The span of a command's effect, under which the new start hangs."""
    return span_id(incident, "outcome", command)


class _Named(msgspec.Struct):
    record: str
    id: str = ""
    incident: str = ""
    command: str = ""
    revision: int = 0
    at_ms: int = 0
    action: str = ""


_named = msgspec.json.Decoder(_Named)


def traceparent_of(value: bytes | None) -> bytes | None:
    """The header of an outgoing record, by its kind; None for a record of no incident."""
    if value is None:
        return None
    try:
        record = _named.decode(value)
    except msgspec.DecodeError:
        return None
    incident = record.id if record.record == "incident" else record.incident
    if not incident:
        return None
    match record.record:
        case "incident":
            span = incident_span(incident)
        case "decision":
            span = decision_span(incident, record.command, record.revision, record.at_ms, record.action)
        case "command":
            span = command_span(incident, record.id)
        case "outcome" | "forwarded_outcome":
            span = effect_span(incident, record.command)
        case _:
            return None
    return traceparent(incident, span).encode()


def _number(size: int, *parts: str | int) -> int:
    digest = hashlib.sha256(msgspec.json.encode(parts)).digest()[:size]
    return int.from_bytes(digest, "big") or 1
