"""The one module that imports the OpenTelemetry SDK: metrics by push and pull."""

from __future__ import annotations

import importlib.metadata
import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.metrics import CallbackOptions, Counter, Histogram, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    Gauge,
    MetricExportResult,
    MetricReader,
    MetricsData,
    NumberDataPoint,
    PeriodicExportingMetricReader,
    ResourceMetrics,
    ScopeMetrics,
)
from opentelemetry.sdk.metrics.export import Metric as SdkMetric
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from midwatch.streams.settings.schema import TelemetrySettings
from midwatch.streams.telemetry import names
from midwatch.streams.telemetry.endpoint import Endpoint
from midwatch.streams.telemetry.meter import NO_LABELS, Export, Health, Identity, Labels, Meter, Read
from midwatch.streams.telemetry.names import Metric

CLOSE_MS = 3000

log = logging.getLogger(__name__)


def resource(who: Identity) -> Resource:
    """The resource under which this process exports."""
    return Resource(
        {
            names.SERVICE: who.service,
            names.NAMESPACE: who.namespace,
            names.INSTANCE: who.instance,
            names.VERSION: importlib.metadata.version("midwatch"),
        },
        names.SCHEMA_URL,
    )


class SdkExport(Export):
    """The open telemetry of one process."""

    def __init__(self, settings: TelemetrySettings, who: Identity, address: tuple[str, int] | None) -> None:
        self._address = address
        self._registry = CollectorRegistry()
        self._one_at_a_time = threading.Lock()
        self._endpoint: Endpoint | None = None
        # The library logs each failed push with its stack, and a receiver may be away for hours.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        self._gauges = Gauges(resource(who))
        readers: list[MetricReader] = []
        if address is not None:
            readers.append(_Pull(self._registry, self._gauges))
        if settings.otlp:
            exporter = _Push(f"{settings.otlp}/v1/metrics", self._gauges)
            readers.append(PeriodicExportingMetricReader(exporter, settings.interval * 1000))
        self._provider = MeterProvider(readers, resource(who), shutdown_on_exit=False)
        self._meter = SdkMeter(self._provider, self._gauges)

    @property
    def meter(self) -> Meter:
        return self._meter

    def serve(self, health: Callable[[], Health]) -> None:
        if self._address is not None:
            self._endpoint = Endpoint(self._address, self._scrape, health)

    def close(self) -> None:
        if self._endpoint is not None:
            self._endpoint.close()
        try:
            self._provider.shutdown(CLOSE_MS)
        except Exception as error:  # a receiver that is away must not hold back the stop
            log.info("the last metrics were not taken: %s", error)

    def _scrape(self) -> tuple[bytes, str]:
        with self._one_at_a_time:  # the library's reader keeps what it collects in a queue of its own
            return generate_latest(self._registry), CONTENT_TYPE_LATEST


class Gauges:
    """The gauges of a process, read at each scrape and each push.

    The SDK keeps each series of an instrument for ever, and lumps all together once it has 2,000. A gauge of
    jobs must end with its jobs. So gauges are put beside what the SDK has collected.
    """

    def __init__(self, who: Resource) -> None:
        self._resource = who
        self._scope = InstrumentationScope(names.SCOPE, schema_url=names.SCHEMA_URL)
        self._reads: list[tuple[Metric, Read]] = []

    def watch(self, metric: Metric, read: Read) -> None:
        """Read this gauge from now on."""
        self._reads.append((metric, read))

    def beside(self, collected: MetricsData) -> MetricsData:
        """What the SDK collected, and the gauges as they are now.

        The OTLP encoder keeps the last block of each resource and scope only, so all goes into one block.
        """
        now = time.time_ns()
        metrics = [m for metric, read in self._reads if (m := _gauge(metric, read, now)) is not None]
        others: list[ScopeMetrics] = []
        for scope in (scope for block in collected.resource_metrics for scope in block.scope_metrics):
            if scope.scope == self._scope:
                metrics = [*scope.metrics, *metrics]
            else:
                others.append(scope)
        scopes = [*others, ScopeMetrics(self._scope, metrics, names.SCHEMA_URL)]
        return MetricsData([ResourceMetrics(self._resource, scopes, names.SCHEMA_URL)])


def _gauge(metric: Metric, read: Read, now_ns: int) -> SdkMetric | None:
    try:
        points = [NumberDataPoint(labels, now_ns, now_ns, value) for value, labels in read()]
    except Exception:  # one gauge that cannot be read must not hide the others
        log.exception("the gauge %s cannot be read", metric.name)
        return None
    return SdkMetric(metric.name, metric.what, metric.unit, Gauge(points)) if points else None


class _Pull(PrometheusMetricReader):
    def __init__(self, registry: CollectorRegistry, gauges: Gauges) -> None:
        self._beside = gauges.beside
        super().__init__(scope_info_enabled=False, registry=registry)

    def _receive_metrics(self, metrics_data: MetricsData, *arguments: Any, **options: Any) -> None:
        super()._receive_metrics(self._beside(metrics_data), *arguments, **options)


class _Push(OTLPMetricExporter):
    def __init__(self, url: str, gauges: Gauges) -> None:
        self._beside = gauges.beside
        super().__init__(url)

    def export(self, metrics_data: MetricsData, *arguments: Any, **options: Any) -> MetricExportResult:
        return super().export(self._beside(metrics_data), *arguments, **options)


class SdkMeter(Meter):
    """Instruments by the names of `names`; each is made when it is first used."""

    def __init__(self, provider: MeterProvider, gauges: Gauges) -> None:
        self._meter = provider.get_meter(names.SCOPE, schema_url=names.SCHEMA_URL)
        self._gauges = gauges
        self._histograms: dict[str, Histogram] = {}
        self._counters: dict[str, Counter] = {}

    def add(self, metric: Metric, amount: float = 1, labels: Labels = NO_LABELS) -> None:
        counter = self._counters.get(metric.name)
        if counter is None:
            counter = self._counters[metric.name] = self._meter.create_counter(
                metric.name, metric.unit, metric.what
            )
        counter.add(amount, labels)

    def record(self, metric: Metric, value: float, labels: Labels = NO_LABELS) -> None:
        histogram = self._histograms.get(metric.name)
        if histogram is None:
            histogram = self._histograms[metric.name] = self._meter.create_histogram(
                metric.name,
                metric.unit,
                metric.what,
                explicit_bucket_boundaries_advisory=metric.buckets,
            )
        histogram.record(max(value, 0.0), labels)

    def watch(self, metric: Metric, read: Read) -> None:
        if metric.kind == "gauge":
            self._gauges.watch(metric, read)
            return

        def observe(_: CallbackOptions) -> Iterable[Observation]:
            return [Observation(value, labels) for value, labels in read()]

        self._meter.create_observable_counter(metric.name, [observe], metric.unit, metric.what)
