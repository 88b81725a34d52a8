"""Spans and log events as plain values, with their own times. Pure. `sdk_incidents` exports them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from midwatch.streams.telemetry.names import SpanName

Attributes = Mapping[str, str | int | bool]


@dataclass(frozen=True, slots=True)
class SpanRecord:
    """One span. Times are milliseconds since 1970; `parent` 0: the root."""

    kind: SpanName
    trace: int
    span: int
    parent: int
    start_ms: int
    end_ms: int
    attributes: Attributes = field(default_factory=dict)
    failed: str = ""
    """Why its status is an error; "" if it is none."""


@dataclass(frozen=True, slots=True)
class IncidentEvent:
    """One log record. `trace` 0: it belongs to no incident."""

    name: str
    service: str
    time_ms: int
    severity: Literal["INFO", "WARN", "ERROR"]
    body: str
    attributes: Attributes = field(default_factory=dict)
    trace: int = 0
    span: int = 0


class IncidentExport(Protocol):
    """A receiver of spans and log events."""

    def export_spans(self, spans: Sequence[SpanRecord]) -> bool:
        """Whether the receiver has taken all. It waits for the answer, for at most ten seconds."""
        ...

    def export_events(self, events: Sequence[IncidentEvent]) -> bool:
        """As `export_spans`."""
        ...

    def close(self) -> None: ...
