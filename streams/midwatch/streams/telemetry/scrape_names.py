"""The names under which Prometheus knows our metrics and attributes. Pure."""

from __future__ import annotations

from midwatch.streams.telemetry.names import Metric


def prometheus_name(metric: Metric) -> str:
    """The name that a scrape shows; of a histogram, the name before `_bucket`, `_sum` and `_count`."""
    unit = {"s": "_seconds", "By": "_bytes"}.get(
        metric.unit, "_per_second" if metric.unit.endswith("/s") else ""
    )
    return metric.name.replace(".", "_") + unit + ("_total" if metric.kind == "counter" else "")


def prometheus_names(metric: Metric) -> tuple[str, ...]:
    """The names of all its series."""
    name = prometheus_name(metric)
    return (
        tuple(f"{name}_{part}" for part in ("bucket", "sum", "count"))
        if metric.kind == "histogram"
        else (name,)
    )


def prometheus_label(attribute: str) -> str:
    """The label of an attribute."""
    return attribute.replace(".", "_")
