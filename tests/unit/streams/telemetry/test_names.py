"""A name is spelled once, says what it holds, and reads in a scrape as the page tells."""

from __future__ import annotations

import re
import time

import pytest
from opentelemetry.semconv._incubating.attributes import messaging_attributes
from opentelemetry.semconv._incubating.metrics import messaging_metrics
from opentelemetry.semconv.schemas import Schemas
from prometheus_client.parser import text_string_to_metric_families

from house.tree import ROOT, SOURCE_ROOTS
from midwatch.streams.settings.schema import TelemetrySettings
from midwatch.streams.telemetry import names
from midwatch.streams.telemetry.meter import Identity, Reading
from midwatch.streams.telemetry.names import ATTRIBUTES, EVENTS, METRICS, Metric
from midwatch.streams.telemetry.page import page
from midwatch.streams.telemetry.scrape_names import prometheus_label, prometheus_name
from midwatch.streams.telemetry.sdk import SdkExport
from midwatch.streams.worker.counters import Counters
from midwatch.streams.worker.exported import export_counters

PAGE = ROOT / "docs" / "telemetry.md"
FREE_TEXT = (names.DECISION_REASON, names.LINE_TEXT, names.FILE, names.ATTEMPT, names.RANK, names.SLURM_JOB)
OWN_NAME = re.compile(r'"((?:midwatch|messaging|dl|slurm)\.[a-z_]+(?:\.[a-z_]+)*)"')


@pytest.fixture
def export() -> SdkExport:
    return SdkExport(TelemetrySettings(), Identity("midwatch-match", "t", "here"), ("127.0.0.1", 0))


def scraped(export: SdkExport) -> dict[str, list[tuple[dict[str, str], float]]]:
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(export._scrape()[0].decode()):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((dict(sample.labels), sample.value))
    return found


@pytest.mark.capability("C-9")
def test_the_page_is_what_the_names_say() -> None:
    assert PAGE.read_text() == page(), "python -m midwatch.streams.telemetry.page > docs/telemetry.md"


def test_names_of_the_conventions_are_those_of_the_pinned_version() -> None:
    assert Schemas.V1_44_0.value == names.SCHEMA_URL
    ours = (names.DESTINATION, names.PARTITION, names.GROUP, names.SYSTEM, names.OPERATION)
    assert set(ours) <= {value for name, value in vars(messaging_attributes).items() if name.isupper()}
    assert {names.RECORDS.name, names.SENT.name} <= set(map(str, vars(messaging_metrics).values()))


def test_messages_are_counted_with_all_attributes_that_the_conventions_require(export: SdkExport) -> None:
    export_counters(export.meter, Counters(), "midwatch.match")
    shown = scraped(export)
    for metric, operation in ((names.RECORDS, "process"), (names.SENT, "send")):
        ((labels, _),) = shown[prometheus_name(metric)]
        assert labels.keys() == set(map(prometheus_label, metric.attributes))
        assert labels["messaging_operation_name"] == operation
        assert labels["messaging_system"] == "kafka"


def test_no_name_stands_twice() -> None:
    spelled = [metric.name for metric in METRICS]
    assert len(spelled) == len(set(spelled))
    assert len(ATTRIBUTES) == len(set(ATTRIBUTES))


def test_no_other_module_spells_a_name() -> None:
    ours = {*(metric.name for metric in METRICS), *ATTRIBUTES, *EVENTS} - {names.NODE}
    elsewhere = [
        (path.name, name)
        for part in SOURCE_ROOTS
        for path in (ROOT / part).rglob("*.py")
        if path.name != "names.py"
        for name in OWN_NAME.findall(path.read_text())
        if name in ours
    ]
    assert elsewhere == []


def test_every_attribute_is_explained_and_no_metric_has_free_text() -> None:
    for metric in METRICS:
        assert set(metric.attributes) <= ATTRIBUTES.keys(), metric.name
        assert not set(metric.attributes) & set(FREE_TEXT), metric.name
        assert names.RUN not in metric.attributes or metric.kind == "gauge", metric.name


def test_a_scrape_shows_each_metric_under_the_name_of_the_page(export: SdkExport) -> None:
    for metric in METRICS:
        _give(export, metric)
    shown = scraped(export)
    for metric in METRICS:
        suffix = "_count" if metric.kind == "histogram" else ""
        assert prometheus_name(metric) + suffix in shown, metric.name


def _give(export: SdkExport, metric: Metric) -> None:
    if metric.kind == "gauge":
        export.meter.watch(metric, lambda: [(1, {})])
    elif metric.kind == "counter":
        export.meter.add(metric)
    else:
        export.meter.record(metric, 1)


@pytest.mark.capability("X-14")
def test_the_series_of_a_job_end_with_it_however_many_jobs_there_were(export: SdkExport) -> None:
    jobs: list[Reading] = []
    export.meter.watch(names.STEP, lambda: jobs)
    export.meter.add(names.LINES)
    for number in range(30):
        jobs[:] = [(number, {names.RUN: f"local:me/{number}-{each}"}) for each in range(100)]
        assert len(scraped(export)["midwatch_job_step"]) == 100
    jobs[:] = []
    assert "midwatch_job_step" not in scraped(export)


def test_a_gauge_that_cannot_be_read_hides_no_other(export: SdkExport) -> None:
    def broken() -> list[Reading]:
        raise RuntimeError

    export.meter.watch(names.STEP, broken)
    export.meter.watch(names.READY, lambda: [(1, {})])
    export.meter.add(names.LINES)
    assert scraped(export)["midwatch_ready"] == [({}, 1.0)]


def test_a_receiver_that_is_away_holds_nothing_back() -> None:
    settings = TelemetrySettings(otlp="http://127.0.0.1:9", interval=3600)
    export = SdkExport(settings, Identity("midwatch-match", "t", "here"), None)
    export.meter.add(names.LINES)
    began = time.monotonic()
    export.close()
    assert time.monotonic() - began < 10
