"""`make test-otel`: the chain by OTLP, through a real collector, into a real Prometheus 3 and Loki."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from integration.chain.installation import installation, midwatch
from integration.chain.training import PROCESSES, Training
from integration.observe.conftest import OPTIONS, RULES, SOON, start_messages, tell
from integration.observe.go_programs import go_program
from integration.observe.prometheus import Server, begin, query_since
from integration.observe.test_real_prometheus import filled
from integration.telemetry.collector import Collector
from integration.telemetry.incidents import WHOLE, check_tree, names
from integration.telemetry.scraped import ports_of_all
from midwatch.agents.grafana import services
from midwatch.agents.grafana.board import Dashboard, Panel
from midwatch.agents.grafana.write import DASHBOARDS
from midwatch.agents.local.embedded.stack import Endpoints
from processes import wait_for
from sinks import http_sink

pytestmark = pytest.mark.integration


@dataclass
class Received:
    """What has received the metrics, the log records and the traces of one job that failed twice."""

    prometheus: Server
    loki: Server
    traces: Collector
    run: str
    began: float


@pytest.fixture(scope="module")
def received(stack: Endpoints, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Received]:
    directory = tmp_path_factory.mktemp("otlp")
    port, servers, traces = ports_of_all(), list[Server](), Collector()
    addresses = [f"127.0.0.1:{port + number}" for number in range(3)]
    (directory / "prometheus.yml").write_text("global: {evaluation_interval: 1s}\n")
    (directory / "loki.yml").write_text(
        services.text(services.loki(str(directory / "loki"), port + 1, "127.0.0.1"))
    )
    (directory / "collector.yml").write_text(
        services.text(
            services.collector(addresses[2], f"http://{addresses[0]}", f"http://{addresses[1]}", traces.url)
        )
    )
    (directory / "rules.yaml").write_text(RULES)
    argvs = {
        "prometheus": [
            f"--config.file={directory}/prometheus.yml",
            f"--storage.tsdb.path={directory}/data",
            f"--web.listen-address={addresses[0]}",
            "--web.enable-otlp-receiver",
        ],
        "loki": [f"-config.file={directory}/loki.yml"],
        "collector": [f"--config={directory}/collector.yml"],
    }
    try:
        for number, (name, options) in enumerate(argvs.items()):
            servers.append(begin(name, directory, port + number, [str(go_program(name)), *options]))
        prometheus, loki, _ = servers
        prometheus.ready("/-/ready")
        loki.ready("/ready")
        with installation(directory, stack) as watch, http_sink() as told:
            watch.environment["MIDWATCH_TELEMETRY__OTLP"] = f"http://{addresses[2]}"
            watch.environment["MIDWATCH_TELEMETRY__INTERVAL"] = "1s"
            watch.environment["MIDWATCH_RULES__DIRECTORIES"] = str(directory / "rules.yaml")
            for name in PROCESSES:
                watch.start(name)
            watch.start("trace", *midwatch("worker", "trace"))
            start_messages(watch, told)
            watch.ready()
            began, training = time.time(), Training(watch, directory / "job", OPTIONS)
            try:
                run = tell(watch, prometheus, training)
            finally:
                training.end()
            yield Received(prometheus, loki, traces, run, began)
    finally:
        for server in servers:
            server.end()
        traces.close()


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda dashboard: dashboard.uid)
def test_each_query_gives_series_of_metrics_that_came_by_otlp(
    dashboard: Dashboard, received: Received
) -> None:
    empty = [
        expression
        for each in dashboard.queries
        if each.source == "prometheus"
        and "up{" not in each.expression  # there are no scrapes
        and not query_since(received.prometheus, expression := filled(each, received.run), received.began)
    ]
    assert empty == []


def logs(received: Received, expression: str) -> list[tuple[dict[str, str], str]]:
    """Labels and body of each record that Loki finds."""
    answer = received.loki.get(
        "/loki/api/v1/query_range",
        query=expression,
        start=f"{int(received.began - 60)}000000000",
        end=f"{int(time.time() + 60)}000000000",
        limit="500",
    )
    return [(each["stream"], line) for each in answer["data"]["result"] for _, line in each["values"]]


def panels_of_logs() -> list[Panel]:
    return [panel for board in DASHBOARDS for panel in board.panels if panel.kind == "logs"]


@pytest.mark.parametrize("panel", panels_of_logs(), ids=lambda panel: panel.title)
def test_each_panel_of_log_records_finds_those_of_the_job(panel: Panel, received: Received) -> None:
    (asked,) = panel.queries
    expression = re.sub(r"\$run", received.run, asked.expression)
    wait_for(
        lambda: any(labels.get("run") == received.run for labels, _ in logs(received, expression)),
        f"Loki finds {expression}",
        SOON,
        seen=lambda: logs(received, '{service_name=~".+"}'),
    )


def test_a_record_of_an_incident_holds_its_evidence_and_leads_to_its_trace(received: Received) -> None:
    def of_first() -> list[dict[str, Any]]:
        found = logs(received, '{service_name="midwatch-detect"} | midwatch_incident_id != ""')
        return [labels for labels, _ in found if labels.get("error_type") == "nccl_timeout"]

    wait_for(of_first, "the first incident", SOON)
    labels = of_first()[0]
    assert "Watchdog caught collective operation timeout" in labels["log_record_original"]
    assert labels["log_file_path"].endswith(".log")
    trace = labels["trace_id"]
    wait_for(
        lambda: {span.name for span in received.traces.spans if span.trace == trace} >= set(WHOLE),
        "whole",
        SOON,
    )
    check_tree({span.name: span for span in received.traces.spans if span.trace == trace})
    assert names(received.traces, received.run)
