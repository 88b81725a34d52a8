"""Each query of each dashboard and each alert, by a real Prometheus that saw a job fail and be rescued."""

from __future__ import annotations

import re
import signal
from typing import Any

import pytest

from integration.observe.conftest import SOON, Story
from integration.observe.prometheus import query, query_since
from midwatch.agents.grafana.alerts import ALERTS, DEAD_MAN, Alert
from midwatch.agents.grafana.board import Dashboard, Query
from midwatch.agents.grafana.promql import OWN_LABELS
from midwatch.agents.grafana.write import DASHBOARDS
from midwatch.streams.telemetry.names import ALL_BUT_SHIP, METRICS
from midwatch.streams.telemetry.scrape_names import prometheus_label, prometheus_name, prometheus_names
from midwatch.streams.telemetry.start import PROCESSES
from processes import wait_for
from sinks import HttpSink

pytestmark = pytest.mark.integration

SELECTOR = re.compile(r"\b(midwatch_[a-z_]+)(\{[^}]*\})?")
OF_SHIPPERS = tuple(prometheus_name(metric) for metric in METRICS if metric.of == "ship")
"""Shippers export by OTLP only, which this Prometheus does not take."""


def filled(query_of_panel: Query, run: str) -> str:
    """The expression as Grafana sends it."""
    windows = {"$__rate_interval": "10s", "$__range": "10m", "$run": run}
    return re.sub(r"\$\w+", lambda found: windows[found[0]], query_of_panel.expression)


@pytest.mark.capability("C-9")
@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda dashboard: dashboard.uid)
def test_each_query_of_a_dashboard_gives_series(dashboard: Dashboard, story: Story) -> None:
    asked = [each for each in dashboard.queries if each.source == "prometheus"]
    assert asked
    empty = [
        expression
        for expression in (filled(each, story.run) for each in asked)
        if not query_since(story.prometheus, expression, story.began)
        and not any(name in expression for name in OF_SHIPPERS)
    ]
    assert empty == []


@pytest.mark.capability("C-9")
def test_every_alert_is_evaluated_and_those_of_what_happened_fire_and_reach_the_sink(story: Story) -> None:
    (group,) = story.prometheus.get("/api/v1/rules")["data"]["groups"]
    assert [rule["name"] for rule in group["rules"]] == [alert.name for alert in ALERTS]
    assert {
        rule["name"]: rule.get("lastError", "") for rule in group["rules"] if rule["health"] != "ok"
    } == {}
    happened = {"LossSpike", "JobFailed", "DeadLetters", "PartitionStopped", "Blind"}
    expected = {f"Midwatch{name}" for name in happened} | {DEAD_MAN}
    wait_for(lambda: expected <= fired(story), "they fire", SOON, seen=lambda: fired(story))
    of_job = {"MidwatchLossSpike", "MidwatchJobFailed"}
    wait_for(
        lambda: of_job <= delivered(story.people, story.run), "the job's alerts are delivered", SOON,
        seen=lambda: delivered(story.people, story.run),
    )  # fmt: skip
    (spike, *_) = [
        each for each in alerts_of(story.people) if each["labels"]["alertname"] == "MidwatchLossSpike"
    ]
    assert spike["annotations"]["summary"].startswith(f"The loss of {story.run} ")
    assert spike["annotations"]["runbook"]
    assert story.dead_man.requests


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: f"{alert.name} {alert.expression[:40]}")
def test_what_an_alert_asks_for_has_series_with_its_labels(alert: Alert, story: Story) -> None:
    """Most alerts must not fire here. What they compare is there, so that they could. No command failed."""
    asked = SELECTOR.findall(alert.expression.replace('outcome=~"failed|expired"', 'outcome!=""'))
    assert asked
    for metric, matchers in asked:
        assert query_since(story.prometheus, metric + matchers, story.began), metric + matchers


@pytest.mark.capability("C-9")
def test_each_metric_comes_from_the_processes_that_the_page_names(story: Story) -> None:
    asked = 'count by (__name__, job) ({__name__=~"(midwatch|messaging_client)_.+"})'
    found = query_since(story.prometheus, asked, story.began).found
    sources: dict[str, set[str]] = {}
    for labels, _ in found:
        sources.setdefault(labels["__name__"], set()).add(labels["job"].rpartition("midwatch-")[2])
    for metric in METRICS:
        exporting = set().union(*(sources.get(name, set()) for name in prometheus_names(metric)))
        named = set(PROCESSES if metric.of == ALL_BUT_SHIP else metric.of.split(", "))
        assert exporting <= named, metric.name
        assert exporting or metric.of == "ship", metric.name


def test_no_series_has_a_label_that_its_metric_does_not_name(story: Story) -> None:
    own = {"__name__", *OWN_LABELS}
    found = story.prometheus.get(
        "/api/v1/series", **{"match[]": '{__name__=~"(midwatch|messaging_client)_.+"}'}
    )
    named = {
        name: {prometheus_label(attribute) for attribute in metric.attributes}
        for metric in METRICS
        for name in prometheus_names(metric)
    }
    wrong = {
        each["__name__"]: left
        for each in found["data"]
        if (left := set(each) - own - named[each["__name__"]])
    }
    assert wrong == {}
    assert {each["__name__"] for each in found["data"] if "run" in each} > {
        "midwatch_job_step",
        "midwatch_job_state",
    }


@pytest.mark.capability("X-14")
def test_a_watch_that_loses_an_eye_raises_an_alarm_and_the_dead_man_alert_ends(story: Story) -> None:
    firing = 'ALERTS{{alertname="{}",alertstate="firing"}}'
    stopped = story.watch.processes["detect"]
    stopped.send_signal(signal.SIGSTOP)
    try:
        missing = firing.format("MidwatchProcessMissing") + ' and on (process) ALERTS{process="detect"}'
        wait_for(lambda: query(story.prometheus, missing), "detect is missing", SOON)
        wait_for(
            lambda: not query(story.prometheus, firing.format(DEAD_MAN)), "nobody says that all is well", SOON
        )
    finally:
        stopped.send_signal(signal.SIGCONT)


def fired(story: Story) -> set[str]:
    """The alerts that have fired at any time."""
    seen = query_since(story.prometheus, 'ALERTS{alertstate="firing"}', story.began)
    return {labels["alertname"] for labels, _ in seen.found}


def alerts_of(sink: HttpSink) -> list[dict[str, Any]]:
    return [alert for request in sink.taken() for alert in request.json["alerts"]]


def delivered(sink: HttpSink, run: str) -> set[str]:
    return {alert["labels"]["alertname"] for alert in alerts_of(sink) if alert["labels"].get("run") == run}
