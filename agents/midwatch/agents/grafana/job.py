"""One job: its loss with what happened to it, its lanes, and what the watch says of it."""

from __future__ import annotations

from typing import Final

from midwatch.agents.detect.job_sight import PHASES, STATES
from midwatch.agents.grafana.board import Annotation, Choice, Dashboard, Panel, Query
from midwatch.agents.grafana.fleet import BAD, GOOD
from midwatch.agents.grafana.loki import records
from midwatch.agents.grafana.promql import CHOSEN, by, coded, series
from midwatch.streams.telemetry import names as n
from midwatch.streams.telemetry.scrape_names import prometheus_name

JOB: Final = Dashboard(
    "midwatch-job",
    "midwatch: job",
    "One job. Marks on the curves tell of loss spikes, restarts and checkpoints.",
    (
        Panel(
            "State",
            "state-timeline",
            "Watched, failed, unknown or over.",
            (Query(coded(n.JOB_STATE, n.STATE, STATES, CHOSEN), "state"),),
            words=STATES,
            good=GOOD,
            bad=BAD,
            height=4,
        ),
        Panel(
            "Phase",
            "state-timeline",
            "What the job's lines say that it does.",
            (Query(coded(n.JOB_PHASE, n.PHASE, PHASES, CHOSEN), "phase"),),
            words=PHASES,
            good=frozenset({"training"}),
            height=4,
        ),
        Panel(
            "Loss",
            "timeseries",
            "Every printed loss, and the latest that counts as healthy. In a spike the two part.",
            (Query(series(n.PRINTED_LOSS, CHOSEN), "printed"), Query(series(n.LOSS, CHOSEN), "healthy")),
            width=24,
            height=10,
        ),
        Panel("Step", "timeseries", "The latest step.", (Query(series(n.STEP, CHOSEN), "step"),)),
        Panel(
            "Steps a second",
            "timeseries",
            "The pace of the present attempt.",
            (Query(series(n.THROUGHPUT, CHOSEN), "steps/s"),),
        ),
        Panel(
            "Time since the last step",
            "timeseries",
            "Time since a step was seen, and the silence by which a stall is judged.",
            (
                Query(series(n.PROGRESS_AGE, CHOSEN), "last step"),
                Query(series(n.SILENCE, CHOSEN), "silence"),
            ),
            "s",
        ),
        Panel(
            "Time since the last heartbeat",
            "timeseries",
            "By node. A node in silence says nothing of the job: without enough nodes the job is unknown.",
            (Query(series(n.HEARTBEAT_AGE, CHOSEN), "{{node}}"),),
            "s",
        ),
        Panel(
            "Attempt",
            "stat",
            "The present attempt.",
            (Query(series(n.ATTEMPTS, CHOSEN), "attempt"),),
            width=6,
            height=5,
        ),
        Panel(
            "Restarts: made and left",
            "stat",
            "Restarts that the executor accepted, and what the last decision left of the budget.",
            (Query(series(n.RESTARTS, CHOSEN), "made"), Query(series(n.BUDGET_LEFT, CHOSEN), "left")),
            width=6,
            height=5,
        ),
        Panel(
            "Checkpoint loaded",
            "stat",
            "Number of the checkpoint that the present attempt was told to load.",
            (Query(series(n.LOADED, CHOSEN), "checkpoint"),),
            width=6,
            height=5,
        ),
        Panel(
            "Nodes missing",
            "stat",
            "Nodes of the attempt that send no heartbeat.",
            (Query(series(n.NODES_MISSING, CHOSEN), "missing"),),
            width=6,
            height=5,
            red_from=1,
        ),
        Panel(
            "Open findings",
            "timeseries",
            "Findings of the present attempt, by kind.",
            (Query(f"sum {by(n.KIND)} ({series(n.OPEN_FINDING, CHOSEN)})", "{{kind}}"),),
        ),
        Panel(
            "Numbers from the log",
            "timeseries",
            "Captures that rules export.",
            (Query(series(n.CAPTURED, CHOSEN), "{{rule}} {{capture}}"),),
        ),
        Panel(
            "Incidents and findings",
            "logs",
            "The verdict with the line that proves it.",
            (records(n.INCIDENT_SPAN, run=True),),
            width=24,
        ),
        Panel(
            "Decisions",
            "logs",
            "What was decided, and why, or why not.",
            (records(n.DECISION_SPAN, run=True),),
        ),
        Panel("Commands", "logs", "What became of the commands.", (records(n.EFFECT_SPAN, run=True),)),
    ),
    (
        Annotation(
            "Loss spikes",
            "The loss is far above the recent ones.",
            "red",
            Query(series(n.OPEN_FINDING, CHOSEN, (n.KIND, "=", "loss_spike"))),
            "loss spike",
        ),
        Annotation(
            "Restarts",
            "A new attempt began.",
            "blue",
            Query(f"changes({series(n.ATTEMPTS, CHOSEN)}[30s]) > 0"),
            "restart",
        ),
        Annotation(
            "Checkpoints",
            "The job began to save a checkpoint.",
            "green",
            Query(f"{series(n.CHECKPOINT_AT, CHOSEN)} * 1000"),
            "checkpoint",
            value_is_time=True,
        ),
    ),
    (Choice("run", "job", f"label_values({prometheus_name(n.JOB_STATE)}, {n.RUN})"),),
)
