"""Queries for the log records of incidents in Loki, which takes them by OTLP. Pure.

Loki makes a label of the service and structured metadata of all other attributes, with dots as underscores.
"""

from __future__ import annotations

from midwatch.agents.grafana.board import Query
from midwatch.streams.telemetry import names as n
from midwatch.streams.telemetry.names import SpanName
from midwatch.streams.telemetry.scrape_names import prometheus_label


def records(of: SpanName, *, has: str = "", run: bool = False) -> Query:
    """Log records of the process that makes this kind of span. `has`: an attribute that they must have.

    `run`: only those of the chosen job.
    """
    text = f'{{{prometheus_label(n.SERVICE)}="midwatch-{of.service}"}}'
    if has:
        text += f' | {prometheus_label(has)} != ""'
    if run:
        text += f' | {n.RUN} = "$run"'
    return Query(text, source="loki")
