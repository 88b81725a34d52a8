"""A job with spans of its own, as a trainer with OpenTelemetry has them, under `TRACEPARENT` if it is there.

Beside its directory lies the file `collector` with the address for its spans.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

WRITER = Path(__file__).parents[1] / "chain" / "writer.py"


def main(directory: Path) -> None:
    """Tell that the training began, then be the writer."""
    provider = TracerProvider(resource=Resource({"service.name": "trainer"}))
    exporter = OTLPSpanExporter(f"{(directory.parent / 'collector').read_text()}/v1/traces")
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    parent = TraceContextTextMapPropagator().extract({"traceparent": os.environ.get("TRACEPARENT", "")})
    with provider.get_tracer("trainer").start_as_current_span("train", parent):
        pass
    provider.shutdown()
    os.execv(sys.executable, [sys.executable, str(WRITER), *sys.argv[1:]])  # noqa: S606  # no shell is meant


if __name__ == "__main__":
    main(Path(sys.argv[1]))
