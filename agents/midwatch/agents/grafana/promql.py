"""Pieces of PromQL, made from our own names: a metric or a label that no code exports raises. Pure."""

from __future__ import annotations

from typing import Final, Literal

from midwatch.streams.telemetry import names as n
from midwatch.streams.telemetry.names import Metric
from midwatch.streams.telemetry.scrape_names import prometheus_label, prometheus_name

JOB: Final = "job"
"""Prometheus's own label: namespace and service, such as `mw/midwatch-detect`."""
INSTANCE: Final = "instance"
LE: Final = "le"
OWN_LABELS: Final = frozenset({JOB, INSTANCE, LE})
"""Labels that Prometheus itself adds."""

CHOSEN: Final = (n.RUN, "=", "$run")
"""The job that the dashboard's variable names."""

Operator = Literal["=", "!=", "=~", "!~"]
Matcher = tuple[str, Operator, str]
Part = Literal["", "bucket", "sum", "count"]


def series(metric: Metric, *matchers: Matcher, part: Part = "") -> str:
    """The series of a metric. `part` names which series of a histogram.

    Raises:
        ValueError: the metric has no such label, or no such part.
    """
    if (metric.kind == "histogram") != bool(part):
        raise ValueError(f"{metric.name} is a {metric.kind}, and the part is {part!r}")
    for attribute, _, _ in matchers:
        if attribute not in metric.attributes and attribute not in OWN_LABELS:
            raise ValueError(f"{metric.name} has no attribute {attribute}")
    inner = ",".join(f'{prometheus_label(name)}{operator}"{value}"' for name, operator, value in matchers)
    return prometheus_name(metric) + (f"_{part}" if part else "") + (f"{{{inner}}}" if inner else "")


def by(*attributes: str) -> str:
    """A grouping, as it stands behind an aggregation."""
    return f"by ({', '.join(map(prometheus_label, attributes))})"


def on(*attributes: str) -> str:
    """The labels on which two sides are joined."""
    return f"on ({', '.join(map(prometheus_label, attributes))})"


def rate(metric: Metric, *matchers: Matcher, window: str = "$__rate_interval") -> str:
    """What a counter gains in a second."""
    return f"rate({series(metric, *matchers)}[{window}])"


def grown(metric: Metric, *matchers: Matcher, window: str) -> str:
    """By how much a counter grew in a window.

    A counter of ours appears with its first event, and `increase` does not see this first one. So a series
    that was not there before the window counts whole.
    """
    whole = series(metric, *matchers)
    return f"(({whole} unless {whole} offset {window}) or increase({whole}[{window}]))"


def quantile(share: float, metric: Metric, *matchers: Matcher, window: str) -> str:
    """A quantile of a histogram; nothing while there were no events."""
    buckets = series(metric, *matchers, part="bucket")
    return f"histogram_quantile({share}, sum {by(LE)} (rate({buckets}[{window}])))"


def coded(metric: Metric, attribute: str, words: tuple[str, ...], *matchers: Matcher) -> str:
    """For each job the number of the word that holds, counted from 1. A lane of states is drawn from it."""
    parts = (
        f"{series(metric, *matchers, (attribute, '=', word))} * {number}"
        for number, word in enumerate(words, 1)
    )
    return f"max {by(n.RUN)} ({' or '.join(parts)})"


def of_process(process: str) -> Matcher:
    """The series of one kind of process, whatever the namespace."""
    return JOB, "=~", f".*/midwatch-{process}"
