"""A dashboard in the JSON that Grafana reads (classic schema). Pure."""

from __future__ import annotations

from typing import Any

from midwatch.agents.grafana.board import Annotation, Choice, Dashboard, Panel, Query, Source

SCHEMA_VERSION = 39
"""Grafana migrates this version of the schema by itself; every version since 10.3 knows it."""
COLUMNS = 24
TAG = "midwatch"

Json = dict[str, Any]


def dashboard_json(dashboard: Dashboard) -> Json:
    """The whole dashboard. The same value always gives the same JSON."""
    sources: tuple[Source, ...] = ("prometheus", "loki")
    used = [source for source in sources if any(query.source == source for query in dashboard.queries)]
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "description": dashboard.what,
        "tags": [TAG],
        "editable": True,
        "graphTooltip": 1,
        "schemaVersion": SCHEMA_VERSION,
        "refresh": "10s",
        "time": {"from": dashboard.since, "to": "now"},
        "timezone": "browser",
        "links": [_others()],
        "templating": {"list": [*map(_source, used), *map(_choice, dashboard.choices)]},
        "annotations": {"list": [_annotation(annotation) for annotation in dashboard.annotations]},
        "panels": _placed(dashboard.panels),
    }


def _placed(panels: tuple[Panel, ...]) -> list[Json]:
    """From left to right, in rows as high as their highest panel."""
    placed, left, top, deep = [], 0, 0, 0
    for number, panel in enumerate(panels, 1):
        if left + panel.width > COLUMNS:
            left, top, deep = 0, top + deep, 0
        at = {"h": panel.height, "w": panel.width, "x": left, "y": top}
        placed.append(_panel(number, panel, at))
        left, deep = left + panel.width, max(deep, panel.height)
    return placed


def _panel(number: int, panel: Panel, at: Json) -> Json:
    made: Json = {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.what,
        "gridPos": at,
        "options": _options(panel),
    }
    if panel.queries:
        made["datasource"] = _reference(panel.queries[0].source)
        made["targets"] = [
            _target(letter, query) for letter, query in zip("ABCDEFGH", panel.queries, strict=False)
        ]
        made["fieldConfig"] = {"defaults": _defaults(panel), "overrides": []}
    if panel.kind == "table":
        made["transformations"] = [
            {"id": "merge", "options": {}},
            {"id": "organize", "options": {"excludeByName": {"Time": True}}},
        ]
    return made


def _target(letter: str, query: Query) -> Json:
    if query.source == "loki":
        return {
            "refId": letter,
            "datasource": _reference("loki"),
            "expr": query.expression,
            "queryType": "range",
        }
    return {
        "refId": letter,
        "datasource": _reference("prometheus"),
        "expr": query.expression,
        "legendFormat": query.legend or "__auto",
        "instant": query.instant,
        "range": not query.instant,
        "format": "table" if query.instant else "time_series",
    }


def _defaults(panel: Panel) -> Json:
    steps: list[Json] = [{"color": "green", "value": None}]
    if panel.red_from is not None:
        steps.append({"color": "red", "value": panel.red_from})
    made: Json = {"unit": panel.unit, "thresholds": {"mode": "absolute", "steps": steps}}
    if panel.kind == "timeseries":
        made["custom"] = {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 5, "showPoints": "auto"}
    if panel.words:
        made["mappings"] = [
            {
                "type": "value",
                "options": {
                    str(number): {"text": word, "color": _colour(panel, word), "index": number}
                    for number, word in enumerate(panel.words, 1)
                },
            }
        ]
    return made


def _colour(panel: Panel, word: str) -> str:
    if word in panel.good:
        return "green"
    return "red" if word in panel.bad else "yellow"


def _options(panel: Panel) -> Json:
    legend = {"calcs": ["lastNotNull"], "displayMode": "list", "placement": "bottom", "showLegend": True}
    tooltip = {"mode": "multi", "sort": "desc"}
    match panel.kind:
        case "timeseries":
            return {"legend": legend, "tooltip": tooltip}
        case "state-timeline":
            return {
                "legend": legend | {"calcs": []},
                "tooltip": tooltip,
                "rowHeight": 0.9,
                "showValue": "auto",
                "mergeValues": True,
            }
        case "stat":
            return {
                "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
                "colorMode": "value",
                "graphMode": "none",
                "justifyMode": "auto",
                "orientation": "auto",
                "textMode": "auto",
                "wideLayout": True,
                "showPercentChange": False,
                "percentChangeColorMode": "standard",
            }
        case "logs":
            return {
                "dedupStrategy": "none",
                "enableLogDetails": True,
                "prettifyLogMessage": False,
                "showCommonLabels": False,
                "showLabels": False,
                "showLogContextToggle": False,
                "showTime": True,
                "sortOrder": "Descending",
                "wrapLogMessage": True,
            }
        case "table":
            return {"showHeader": True, "cellHeight": "sm"}
        case "alertlist":
            return {
                "viewMode": "list",
                "groupMode": "default",
                "groupBy": [],
                "maxItems": 30,
                "sortOrder": 1,
                "alertName": "Midwatch",
                "alertInstanceLabelFilter": "",
                "stateFilter": {
                    "firing": True,
                    "pending": True,
                    "noData": False,
                    "normal": False,
                    "error": True,
                },
            }


def _annotation(annotation: Annotation) -> Json:
    made: Json = {
        "name": annotation.name,
        "enable": True,
        "iconColor": annotation.colour,
        "datasource": _reference(annotation.query.source),
        "expr": annotation.query.expression,
        "titleFormat": annotation.title,
        "textFormat": annotation.what,
    }
    if annotation.query.source == "prometheus":
        made |= {"step": "15s", "useValueForTime": annotation.value_is_time}
    return made


def _choice(choice: Choice) -> Json:
    return {
        "name": choice.name,
        "label": choice.label,
        "type": "query",
        "datasource": _reference("prometheus"),
        "query": choice.expression,
        "refresh": 2,
        "sort": 1,
        "multi": False,
        "includeAll": False,
    }


def _source(source: Source) -> Json:
    return {"name": source, "label": source.capitalize(), "type": "datasource", "query": source, "hide": 0}


def _reference(source: Source) -> Json:
    return {"type": source, "uid": f"${{{source}}}"}


def _others() -> Json:
    return {
        "title": "midwatch",
        "type": "dashboards",
        "tags": [TAG],
        "asDropdown": True,
        "icon": "external link",
        "includeVars": True,
        "keepTime": True,
        "targetBlank": False,
        "tooltip": "",
    }
