"""A stand-in for an OpenTelemetry collector: it keeps all that comes by OTLP/http, as often as it came."""

from __future__ import annotations

import gzip
import threading
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

KINDS: dict[str, Any] = {
    "/v1/traces": ExportTraceServiceRequest,
    "/v1/logs": ExportLogsServiceRequest,
    "/v1/metrics": ExportMetricsServiceRequest,
}


@dataclass(frozen=True)
class GotSpan:
    """One span as it arrived; ids in hex, times in milliseconds."""

    name: str
    service: str
    trace: str
    span: str
    parent: str
    start_ms: int
    end_ms: int
    attributes: dict[str, Any] = field(hash=False)
    failed: bool = False


@dataclass(frozen=True)
class GotLog:
    """One log record as it arrived."""

    name: str
    service: str
    body: str
    severity: str
    trace: str
    time_ms: int
    attributes: dict[str, Any] = field(hash=False)


class Collector:
    """It answers 503 while `away` is set, as a collector that cannot write does."""

    def __init__(self) -> None:
        self.spans: list[GotSpan] = []
        self.logs: list[GotLog] = []
        self.metrics: set[tuple[str, str]] = set()
        self.away = False
        self.refused = 0
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"collector": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def of_run(self, run: str) -> list[GotSpan]:
        """The spans of all traces in which a span names this job."""
        traces = {span.trace for span in self.spans if span.attributes.get("run") == run}
        return [span for span in self.spans if span.trace in traces]

    def twice(self) -> list[tuple[str, str]]:
        """Names and ids of spans that came more than once, and names and contents of such log records."""
        counts = Counter((span.name, span.span) for span in self.spans)
        counts.update(
            (log.name, repr((log.trace, log.severity, sorted(log.attributes.items())))) for log in self.logs
        )
        return [each for each, count in counts.items() if count > 1]

    def take(self, path: str, body: bytes) -> None:
        request = KINDS[path]()
        request.ParseFromString(body)
        with self._lock:
            if path == "/v1/traces":
                self.spans += _spans(request)
            elif path == "/v1/logs":
                self.logs += _logs(request)
            else:
                self.metrics |= _metrics(request)


class _Handler(BaseHTTPRequestHandler):
    collector: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        if self.collector.away:
            self.collector.refused += 1
            self.send_response(503)
        else:
            self.collector.take(self.path, body)
            self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """The tests look at what came."""


def _spans(request: Any) -> list[GotSpan]:
    return [
        GotSpan(
            span.name,
            _plain(resource.resource.attributes)["service.name"],
            span.trace_id.hex(),
            span.span_id.hex(),
            span.parent_span_id.hex(),
            span.start_time_unix_nano // 1_000_000,
            span.end_time_unix_nano // 1_000_000,
            _plain(span.attributes),
            span.status.code == 2,
        )
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def _logs(request: Any) -> list[GotLog]:
    return [
        GotLog(
            record.event_name,
            _plain(resource.resource.attributes)["service.name"],
            record.body.string_value,
            record.severity_text,
            record.trace_id.hex(),
            record.time_unix_nano // 1_000_000,
            _plain(record.attributes),
        )
        for resource in request.resource_logs
        for scope in resource.scope_logs
        for record in scope.log_records
    ]


def _metrics(request: Any) -> set[tuple[str, str]]:
    return {
        (_plain(resource.resource.attributes)["service.name"], metric.name)
        for resource in request.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


def _plain(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}
