"""The pipeline: who watches the watch."""

from __future__ import annotations

from typing import Final

from midwatch.agents.grafana.board import Dashboard, Panel, Query
from midwatch.agents.grafana.promql import INSTANCE, JOB, by, grown, quantile, rate, series
from midwatch.streams.telemetry import names as n

PIPELINE: Final = Dashboard(
    "midwatch-pipeline",
    "midwatch: pipeline",
    "Who watches the watch: readiness, lag, throughput, and what could not be used.",
    (
        Panel(
            "Ready",
            "timeseries",
            "1 while a process sees all that it must see. A process that died has no line.",
            (Query(series(n.READY), "{{job}} {{instance}}"),),
        ),
        Panel(
            "Age of the last look",
            "timeseries",
            "The dead-man metric: how long ago a process last saw that it keeps up.",
            (Query(f"time() - {series(n.ALIVE)}", "{{job}} {{instance}}"),),
            "s",
        ),
        Panel(
            "Lag",
            "timeseries",
            "Records that are not handled yet, by worker and topic.",
            (
                Query(
                    f"sum {by(JOB, n.DESTINATION)} ({series(n.LAG)})",
                    "{{job}} {{messaging_destination_name}}",
                ),
            ),
        ),
        Panel(
            "Records a second",
            "timeseries",
            "Records that each worker read, and those that Kafka acknowledged.",
            (
                Query(f"sum {by(JOB)} ({rate(n.RECORDS)})", "{{job}} read"),
                Query(f"sum {by(JOB)} ({rate(n.SENT)})", "{{job}} sent"),
            ),
        ),
        Panel(
            "Lines a second",
            "timeseries",
            "Lines that were matched.",
            (Query(f"sum({rate(n.LINES)})", "matched"),),
        ),
        Panel(
            "From reading a line to its match",
            "timeseries",
            "The age of a line when it is matched.",
            tuple(
                Query(quantile(share, n.LINE_AGE, window="$__rate_interval"), f"p{share * 100:.0f}")
                for share in (0.5, 0.99)
            ),
            "s",
        ),
        Panel(
            "Hits by rule",
            "table",
            "The rules that hit most often since the start of match.",
            (Query(f"topk(20, sum {by(n.RULE)} ({series(n.HITS)}))", instant=True),),
        ),
        Panel(
            "Dead letters",
            "timeseries",
            "Records within 15 minutes that could not be used.",
            (
                Query(
                    f"sum {by(n.DESTINATION, n.KIND)} ({grown(n.REFUSED, window='15m')})",
                    "{{messaging_destination_name}} {{kind}}",
                ),
            ),
        ),
        Panel(
            "Stopped partitions",
            "timeseries",
            "Partitions that wait for a newer worker. No line: none waits.",
            (
                Query(
                    f"sum {by(JOB, n.DESTINATION)} ({series(n.STOPPED)})",
                    "{{job}} {{messaging_destination_name}}",
                ),
            ),
        ),
        Panel(
            "Rules refused",
            "timeseries",
            "Pushes and edits of rules within 15 minutes that could not be used.",
            (Query(f"sum {by(JOB)} ({grown(n.RULES_REFUSED, window='15m')})", "{{job}}"),),
        ),
        Panel(
            "Messages to people",
            "timeseries",
            "Tries within 15 minutes to hand a message to a channel.",
            (
                Query(
                    f"sum {by(n.CHANNEL, n.OUTCOME)} ({grown(n.NOTICES, window='15m')})",
                    "{{channel}} {{outcome}}",
                ),
            ),
        ),
        Panel(
            "Channels that fail",
            "timeseries",
            "1 while a channel refuses messages.",
            (Query(series(n.CHANNEL_FAILS), "{{channel}}"),),
        ),
        Panel(
            "Jobs left out",
            "stat",
            "Jobs without series, because the setting telemetry.runs allows no more.",
            (Query(f"sum {by(JOB)} ({series(n.JOBS_LEFT_OUT)})", "{{job}}"),),
            width=6,
            height=5,
            red_from=1,
        ),
        Panel(
            "Commands open",
            "stat",
            "Commands that were accepted and are not finished.",
            (Query(f"sum({series(n.COMMANDS_OPEN)})", "open"),),
            width=6,
            height=5,
        ),
        Panel(
            "Traces",
            "timeseries",
            "Records whose spans the collector has not taken yet, and spans that it took.",
            (
                Query(series(n.TELEMETRY_LATE), "waiting"),
                Query(f"sum({rate(n.SPANS)})", "spans a second"),
            ),
        ),
        Panel(
            "Shippers: bytes that wait",
            "timeseries",
            "Bytes that Kafka has not acknowledged. Shippers export by OTLP only.",
            (Query(f"sum {by(n.RUN)} ({series(n.BACKLOG)})", "{{run}}"),),
            "bytes",
        ),
        Panel(
            "Shippers: lines a second",
            "timeseries",
            "Lines read on the nodes. Shippers export by OTLP only.",
            (Query(f"sum({rate(n.LINES_SHIPPED)})", "read"),),
        ),
        Panel(
            "Scrapes",
            "timeseries",
            "1 while Prometheus reaches a process. There is no line where metrics come by OTLP.",
            (Query(f'min by ({JOB}, {INSTANCE}) (up{{job=~".*/midwatch-.*"}})', "{{job}} {{instance}}"),),
        ),
    ),
)
