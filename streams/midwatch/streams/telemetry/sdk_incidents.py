"""Sends spans and log events by the OpenTelemetry SDK, with the ids and times that they have."""

from __future__ import annotations

from collections.abc import Sequence

from opentelemetry._logs import SeverityNumber
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider, LogRecordProcessor, ReadableLogRecord, ReadWriteLogRecord
from opentelemetry.sdk._logs.export import LogRecordExportResult
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from midwatch.streams.telemetry import names
from midwatch.streams.telemetry.meter import Identity
from midwatch.streams.telemetry.sdk import resource
from midwatch.streams.telemetry.spans import IncidentEvent, IncidentExport, SpanRecord

_NS = 1_000_000
_SEVERITIES = {"INFO": SeverityNumber.INFO, "WARN": SeverityNumber.WARN, "ERROR": SeverityNumber.ERROR}
_KINDS = {names.COMMAND_SPAN: SpanKind.PRODUCER, names.ANSWER_SPAN: SpanKind.CONSUMER}


class SdkIncidentExport(IncidentExport):
    """Exports to one OTLP/http receiver, under the service that did the work of each span."""

    def __init__(self, url: str, namespace: str, instance: str) -> None:
        self._identity = (namespace, instance)
        self._ids = _GivenIds()
        self._spans = _Ended()
        self._events = _Emitted()
        self._tracers: dict[str, TracerProvider] = {}
        self._loggers: dict[str, LoggerProvider] = {}
        self._span_exporter = OTLPSpanExporter(f"{url}/v1/traces")
        self._log_exporter = OTLPLogExporter(f"{url}/v1/logs")

    def export_spans(self, spans: Sequence[SpanRecord]) -> bool:
        for span in spans:
            self._add_span(span)
        return self._span_exporter.export(self._spans.take()) is SpanExportResult.SUCCESS

    def export_events(self, events: Sequence[IncidentEvent]) -> bool:
        for event in events:
            self._add_event(event)
        return self._log_exporter.export(self._events.take()) is LogRecordExportResult.SUCCESS

    def close(self) -> None:
        self._span_exporter.shutdown()  # type: ignore[no-untyped-call]  # the library's
        self._log_exporter.shutdown()  # type: ignore[no-untyped-call]  # the library's

    def _add_span(self, record: SpanRecord) -> None:
        provider = self._tracers.get(record.kind.service)
        if provider is None:
            provider = TracerProvider(
                sampler=ALWAYS_ON,
                resource=resource(self._who(record.kind.service)),
                shutdown_on_exit=False,
                id_generator=self._ids,
            )
            provider.add_span_processor(self._spans)
            self._tracers[record.kind.service] = provider
        self._ids.trace, self._ids.span = record.trace, record.span
        tracer = provider.get_tracer(names.SCOPE, schema_url=names.SCHEMA_URL)
        span = tracer.start_span(
            record.kind.name,
            _context(record.trace, record.parent),
            _KINDS.get(record.kind, SpanKind.INTERNAL),
            dict(record.attributes),
            start_time=record.start_ms * _NS,
        )
        if record.failed:
            span.set_status(Status(StatusCode.ERROR, record.failed))
        span.end(record.end_ms * _NS)

    def _add_event(self, event: IncidentEvent) -> None:
        provider = self._loggers.get(event.service)
        if provider is None:
            provider = LoggerProvider(resource(self._who(event.service)), shutdown_on_exit=False)
            provider.add_log_record_processor(self._events)
            self._loggers[event.service] = provider
        provider.get_logger(names.SCOPE, schema_url=names.SCHEMA_URL).emit(
            timestamp=event.time_ms * _NS,
            observed_timestamp=event.time_ms * _NS,
            context=_context(event.trace, event.span),
            severity_number=_SEVERITIES[event.severity],
            severity_text=event.severity,
            body=event.body,
            attributes=dict(event.attributes),
            event_name=event.name,
        )

    def _who(self, service: str) -> Identity:
        return Identity(f"midwatch-{service}", *self._identity)


def _context(trace: int, span: int) -> Context:
    """The context of a span that this process may not know; an empty one for no span."""
    if not span:
        return Context()
    flags = TraceFlags(TraceFlags.SAMPLED)
    return set_span_in_context(NonRecordingSpan(SpanContext(trace, span, True, flags)), Context())


class _GivenIds(IdGenerator):
    """Gives the ids of the span that is made now."""

    trace = 0
    span = 0

    def generate_trace_id(self) -> int:
        return self.trace

    def generate_span_id(self) -> int:
        return self.span


class _Ended(SpanProcessor):
    """Keeps ended spans until they are taken."""

    def __init__(self) -> None:
        self._kept: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self._kept.append(span)

    def take(self) -> list[ReadableSpan]:
        kept, self._kept = self._kept, []
        return kept


class _Emitted(LogRecordProcessor):
    """Keeps log records until they are taken."""

    def __init__(self) -> None:
        self._kept: list[ReadableLogRecord] = []

    def on_emit(self, log_record: ReadWriteLogRecord) -> None:
        assert log_record.resource is not None  # noqa: S101  # the provider sets it
        self._kept.append(
            ReadableLogRecord(log_record.log_record, log_record.resource, log_record.instrumentation_scope)
        )

    def take(self) -> list[ReadableLogRecord]:
        kept, self._kept = self._kept, []
        return kept

    def shutdown(self) -> None:
        """Nothing is held open."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002  # the library's signature
        return True
