"""The fleet: all jobs at a glance, and whether the watch itself sees them."""

from __future__ import annotations

from typing import Final

from midwatch.agents.detect.job_sight import STATES
from midwatch.agents.grafana.board import Dashboard, Panel, Query
from midwatch.agents.grafana.promql import by, coded, grown, series
from midwatch.streams.telemetry import names as n

GOOD: Final = frozenset({"watched", "over"})
BAD: Final = frozenset({"failed"})

FLEET: Final = Dashboard(
    "midwatch-fleet",
    "midwatch: fleet",
    "All jobs at a glance. A job that nobody sees well enough is unknown, and never watched.",
    (
        Panel(
            "Jobs by state",
            "stat",
            "How many jobs are in each state now.",
            (Query(f"sum {by(n.STATE)} ({series(n.JOB_STATE)})", "{{state}}"),),
            width=12,
            height=5,
        ),
        Panel(
            "The watch sees",
            "stat",
            "The worst process: yes while all see all that they must see. Without a value nobody watches.",
            (Query(f"min({series(n.READY)})", "all see"),),
            words=("yes",),
            good=frozenset({"yes"}),
            width=4,
            height=5,
        ),
        Panel(
            "Restarts accepted",
            "stat",
            "Restarts of all jobs that the executor accepted in the chosen time.",
            (
                Query(
                    "sum("
                    + grown(
                        n.OUTCOMES,
                        (n.ACTION, "=", "restart"),
                        (n.OUTCOME, "=", "accepted"),
                        window="$__range",
                    )
                    + ")",
                    "restarts",
                ),
            ),
            width=4,
            height=5,
        ),
        Panel(
            "Incidents settled",
            "stat",
            "Incidents of all jobs that settled in the chosen time.",
            (Query(f"sum({grown(n.INCIDENTS, window='$__range')})", "incidents"),),
            width=4,
            height=5,
        ),
        Panel(
            "Lanes",
            "state-timeline",
            "One lane a job: watched, failed, unknown or over.",
            (Query(coded(n.JOB_STATE, n.STATE, STATES), "{{run}}"),),
            words=STATES,
            good=GOOD,
            bad=BAD,
            width=24,
            height=10,
        ),
        Panel(
            "Time since the last step",
            "timeseries",
            "A job whose line climbs makes no step.",
            (Query(series(n.PROGRESS_AGE), "{{run}}"),),
            "s",
        ),
        Panel(
            "Steps a second",
            "timeseries",
            "The pace of each job in its present attempt.",
            (Query(series(n.THROUGHPUT), "{{run}}"),),
        ),
        Panel(
            "Open findings",
            "timeseries",
            "How many jobs have an open finding of each kind.",
            (Query(f"sum {by(n.KIND)} ({series(n.OPEN_FINDING)})", "{{kind}}"),),
        ),
        Panel(
            "Restarts left",
            "timeseries",
            "What the last decision left of each job's budget. A job without a decision has no line.",
            (Query(series(n.BUDGET_LEFT), "{{run}}"),),
        ),
        Panel("Alerts", "alertlist", "Alerts of midwatch that fire or are about to.", width=24),
    ),
)
