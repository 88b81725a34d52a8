"""The committed dashboards and alerts are what the code says, and ask for nothing that no code exports."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from house.tree import ROOT, SOURCE_ROOTS
from midwatch.agents.grafana import page
from midwatch.agents.grafana.alerts import ALERTS, DEAD_MAN
from midwatch.agents.grafana.promql import OWN_LABELS, series
from midwatch.agents.grafana.write import DASHBOARDS, files
from midwatch.streams.telemetry import names
from midwatch.streams.telemetry.names import METRICS
from midwatch.streams.telemetry.scrape_names import prometheus_label, prometheus_names

OBSERVE = ROOT / "observe"
OURS = {name: metric for metric in METRICS for name in prometheus_names(metric)}
OF_PROMETHEUS = {"up"}
METRIC = re.compile(r"\b(?:midwatch|messaging_client)_[a-z_]+\b")
SELECTED = re.compile(r"\b([a-z_]+)\{([^}]*)\}")
GROUPED = re.compile(r"\b(?:by|on|without|ignoring) \(([^)]*)\)")
IN_LEGEND = re.compile(r"\{\{\s*(\w+)\s*\}\}")
QUOTED = re.compile(r'"[^"]*"')
WORDS_OF_PROMQL = {
    "and", "or", "unless", "offset", "by", "on", "sum", "min", "max", "count", "rate", "increase", "changes",
    "delta", "histogram_quantile", "absent", "time", "topk", "label_values", "max_over_time",
}  # fmt: skip


@pytest.mark.capability("C-9")
def test_the_committed_files_are_what_the_code_writes() -> None:
    written = {str(p.relative_to(OBSERVE)): p.read_text() for p in OBSERVE.rglob("*") if p.is_file()}
    assert written == files(), "python -m midwatch.agents.grafana.write observe"


def test_the_page_is_what_the_code_says() -> None:
    command = "python -m midwatch.agents.grafana.page > docs/grafana.md"
    assert (ROOT / "docs" / "grafana.md").read_text() == page.page(), command


def dashboards() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted((OBSERVE / "dashboards").glob("*.json")):
        yield path.stem, json.loads(path.read_text())


def asked() -> Iterator[tuple[str, str, str]]:
    """The place, expression and legend of each query and alert, from the committed files alone."""
    for name, board in dashboards():
        for panel in board["panels"]:
            for target in panel.get("targets", ()):
                if target["datasource"]["type"] == "prometheus":
                    yield f"{name}: {panel['title']}", target["expr"], target["legendFormat"]
        for mark in board["annotations"]["list"]:
            yield f"{name}: {mark['name']}", mark["expr"], ""
        for choice in board["templating"]["list"]:
            if choice["type"] == "query":
                yield f"{name}: {choice['name']}", choice["query"], ""
    for group in yaml.safe_load((OBSERVE / "prometheus" / "alerts.yml").read_text())["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"], " ".join(rule["annotations"].values())


def strange(expression: str, legend: str) -> set[str]:
    """The metrics, labels and label values that no code exports."""
    bare = QUOTED.sub('""', expression)
    named = set(METRIC.findall(bare)) | ({"up"} if "up{" in bare else set())
    found = named - OURS.keys() - OF_PROMETHEUS
    labels = {prometheus_label(a) for name in named & OURS.keys() for a in OURS[name].attributes} | OWN_LABELS
    for metric, inner in SELECTED.findall(bare):
        own = {prometheus_label(a) for a in OURS[metric].attributes} if metric in OURS else set()
        found |= {each.partition("=")[0].rstrip("!~") for each in inner.split(",")} - own - OWN_LABELS
    for group in GROUPED.findall(bare):
        found |= {each.strip() for each in group.split(",")} - labels
    found |= set(IN_LEGEND.findall(legend)) - labels
    # What is left are functions and plain words: a metric of a strange name would stand among them.
    rest = METRIC.sub("", SELECTED.sub("", GROUPED.sub("", bare)))
    return found | (set(re.findall(r"(?<![\w$])[a-z][a-z_]+\b(?!\()", rest)) - WORDS_OF_PROMQL - {"run"})


@pytest.mark.capability("C-9")
def test_no_panel_and_no_alert_asks_for_what_no_code_exports() -> None:
    every = list(asked())
    assert len(every) > 60
    assert {place: found for place, expr, legend in every if (found := strange(expr, legend))} == {}


@pytest.mark.parametrize(
    ("expression", "legend"),
    [
        ("midwatch_jobs", ""),
        ("go_goroutines > 1", ""),
        ('midwatch_job_step{rank="0"}', ""),
        ("sum by (node) (midwatch_job_step)", ""),
        ("midwatch_job_step", "{{rank}}"),
    ],
)
def test_a_strange_metric_or_label_would_be_seen(expression: str, legend: str) -> None:
    assert strange(expression, legend)


def test_every_metric_is_exported_by_code_and_asked_for_by_a_panel() -> None:
    product = "\n".join(
        path.read_text()
        for part in SOURCE_ROOTS
        for path in (ROOT / part).rglob("*.py")
        if path.parent.name not in ("grafana", "telemetry")
    )
    constants = {name: value for name, value in vars(names).items() if value in METRICS}
    assert [name for name in constants if not re.search(rf"\bnames\.{name}\b", product)] == []
    expressions = " ".join(expression for _, expression, _ in asked())
    assert [m.name for m in METRICS if not any(each in expressions for each in prometheus_names(m))] == []


def test_a_wrong_label_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="has no attribute node"):
        series(names.STEP, (names.NODE, "=", "n0"))
    with pytest.raises(ValueError, match="is a histogram"):
        series(names.LINE_AGE)


def test_each_panel_and_alert_says_what_it_is_for() -> None:
    assert all(panel.what for board in DASHBOARDS for panel in board.panels)
    assert all(alert.summary and alert.remedy for alert in ALERTS)
    identities = [board.uid for board in DASHBOARDS]
    assert identities == ["midwatch-fleet", "midwatch-job", "midwatch-incident", "midwatch-pipeline"]
    assert ALERTS[0].name == DEAD_MAN == "MidwatchWatches"


def test_panels_do_not_overlap() -> None:
    for name, board in dashboards():
        taken: set[tuple[int, int]] = set()
        for panel in board["panels"]:
            at = panel["gridPos"]
            cells = {
                (x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])
            }
            assert not cells & taken, (name, panel["title"])
            assert at["x"] + at["w"] <= 24
            taken |= cells
