"""What a receiver of OTLP gets in one push."""

from __future__ import annotations

import pytest

from integration.telemetry.collector import Collector
from midwatch.streams.settings.schema import TelemetrySettings
from midwatch.streams.telemetry import names
from midwatch.streams.telemetry.meter import Identity
from midwatch.streams.telemetry.sdk import SdkExport


@pytest.mark.capability("C-9")
def test_a_push_holds_counters_and_histograms_beside_the_gauges() -> None:
    """The library's encoder keeps one block a resource, and one a scope in it: the last one."""
    collector = Collector()
    try:
        settings = TelemetrySettings(otlp=collector.url, interval=3600)
        export = SdkExport(settings, Identity("midwatch-match", "t", "here"), None)
        export.meter.watch(names.STEP, lambda: [(7, {names.RUN: "local:me/llm"})])
        export.meter.watch(names.RECORDS, lambda: [(3, {names.SYSTEM: "kafka"})])
        export.meter.add(names.LINES)
        export.meter.record(names.LINE_AGE, 1.0)
        export.close()
        pushed = (names.STEP, names.RECORDS, names.LINES, names.LINE_AGE)
        assert collector.metrics == {("midwatch-match", metric.name) for metric in pushed}
    finally:
        collector.close()
