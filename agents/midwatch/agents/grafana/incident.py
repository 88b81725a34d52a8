"""Incidents: what failed and the line that proves it, what was decided and why, and how long it took."""

from __future__ import annotations

from typing import Final

from midwatch.agents.grafana.board import Dashboard, Panel, Query
from midwatch.agents.grafana.loki import records
from midwatch.agents.grafana.promql import by, grown, quantile, series
from midwatch.streams.telemetry import names as n

WINDOW: Final = "5m"

INCIDENT: Final = Dashboard(
    "midwatch-incident",
    "midwatch: incidents",
    "What failed, the line that proves it, what was decided and why, or why not, and what became of it.",
    (
        Panel(
            "Incidents",
            "timeseries",
            f"Incidents that settled within {WINDOW}, by error type.",
            (Query(f"sum {by(n.ERROR_TYPE)} ({grown(n.INCIDENTS, window=WINDOW)})", "{{error_type}}"),),
        ),
        Panel(
            "Findings",
            "timeseries",
            f"Findings that opened within {WINDOW}, by kind.",
            (Query(f"sum {by(n.KIND)} ({grown(n.FINDINGS, window=WINDOW)})", "{{kind}}"),),
        ),
        Panel(
            "Decisions, and why",
            "timeseries",
            f"Decisions within {WINDOW} by action and reason, also those to do nothing.",
            (
                Query(
                    f"sum {by(n.ACTION, n.REASON)} ({grown(n.DECISIONS, window=WINDOW)})",
                    "{{action}}: {{reason}}",
                ),
            ),
        ),
        Panel(
            "Why not restarted",
            "table",
            "Decisions since the start of decide that restarted nothing, by reason.",
            (
                Query(
                    f"sum {by(n.ACTION, n.REASON)} ({series(n.DECISIONS, (n.ACTION, '!=', 'restart'))})",
                    instant=True,
                ),
            ),
        ),
        Panel(
            "From the line to the decision",
            "timeseries",
            "Latency of detection: from the arrival of the root line to the decision.",
            tuple(
                Query(quantile(share, n.DECIDE_TIME, window=WINDOW), f"p{share * 100:.0f}")
                for share in (0.5, 0.95, 0.99)
            ),
            "s",
        ),
        Panel(
            "From reading a line to its match",
            "timeseries",
            "The first part of that latency.",
            tuple(
                Query(quantile(share, n.LINE_AGE, window=WINDOW), f"p{share * 100:.0f}")
                for share in (0.5, 0.99)
            ),
            "s",
        ),
        Panel(
            "Commands",
            "timeseries",
            f"What became of commands within {WINDOW}.",
            (
                Query(
                    f"sum {by(n.ACTION, n.OUTCOME)} ({grown(n.OUTCOMES, window=WINDOW)})",
                    "{{action}}: {{outcome}}",
                ),
            ),
        ),
        Panel(
            "From claiming a command to its end",
            "timeseries",
            "How long the scheduler takes.",
            (Query(quantile(0.95, n.COMMAND_TIME, window=WINDOW), "p95"),),
            "s",
        ),
        Panel(
            "Budget",
            "table",
            "Restarts left to each job by its last decision.",
            (Query(series(n.BUDGET_LEFT), instant=True),),
        ),
        Panel(
            "Restarts of each job",
            "timeseries",
            "Restarts that the executor accepted.",
            (Query(series(n.RESTARTS), "{{run}}"),),
        ),
        Panel(
            "Incidents with their evidence",
            "logs",
            "A record opens to its rule, rank, node and root line, and to its trace.",
            (records(n.INCIDENT_SPAN, has=n.INCIDENT),),
            width=24,
            height=10,
        ),
        Panel(
            "Decisions with their reasons",
            "logs",
            "Also why nothing was done.",
            (records(n.DECISION_SPAN),),
        ),
        Panel("Outcomes", "logs", "What the executor did.", (records(n.EFFECT_SPAN),)),
    ),
)
