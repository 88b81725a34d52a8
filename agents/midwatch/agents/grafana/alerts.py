"""The alerts, each with what a person does about it. Pure; `services` writes them for Prometheus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from midwatch.agents.grafana.promql import JOB, by, grown, of_process, on, quantile, series
from midwatch.streams.telemetry import names as n
from midwatch.streams.telemetry.names import Metric

Severity = Literal["page", "warning", "none"]

PREFIX: Final = "Midwatch"
DEAD_MAN: Final = f"{PREFIX}Watches"
PROCESSES: Final = ("match", "detect", "decide", "executor")
"""Those without which nobody watches. The trace process is not among them: no rescue waits for it."""
LOOKED_S: Final = 60
STUCK_S: Final = 600


@dataclass(frozen=True, slots=True)
class Alert:
    """One rule. `hold`: how long the expression must hold. `remedy` is the runbook's line."""

    name: str
    expression: str
    hold: str
    severity: Severity
    summary: str
    remedy: str
    labels: tuple[tuple[str, str], ...] = ()


def _all_there() -> str:
    """One series while all processes are there, see all, and have looked lately."""
    all_of_them = of_process(f"({'|'.join(PROCESSES)})")
    there = f"count(count {by(JOB)} ({series(n.READY, all_of_them)})) == {len(PROCESSES)}"
    see = f"min({series(n.READY, all_of_them)}) == 1"
    looked = f"time() - min({series(n.ALIVE, all_of_them)}) < {LOOKED_S}"
    return f"({there}) and ({see}) and ({looked})"


def _in_state(state: str) -> str:
    return f"{series(n.JOB_STATE, (n.STATE, '=', state))} == 1"


def _new(metric: Metric, *labels: str, matchers: tuple[tuple[str, Literal["=~", "="], str], ...] = ()) -> str:
    return f"sum {by(*labels)} ({grown(metric, *matchers, window='15m')}) > 0"


ALERTS: Final[tuple[Alert, ...]] = (
    Alert(
        DEAD_MAN,
        _all_there(),
        "0s",
        "none",
        "The watch sees all that it must see.",
        "It fires always. Send it to a service that calls you when it ends: then nobody watches, or nobody "
        "can say so.",
    ),
    *(
        Alert(
            f"{PREFIX}ProcessMissing",
            f"absent({series(n.READY, of_process(process))})",
            "1m",
            "page",
            f"No {process} exports anything.",
            f"Start `midwatch {process if process == 'executor' else f'worker {process}'}` again and read "
            "its last log lines. Jobs run on; nothing is lost, since Kafka keeps what it has not read.",
            (("process", process),),
        )
        for process in PROCESSES
    ),
    Alert(
        f"{PREFIX}Blind",
        f"{series(n.READY)} == 0",
        "1m",
        "page",
        "{{ $labels.job }} does not see all that it must see. What it would judge is unknown, never healthy.",
        "Ask its address for `/ready`: it names the reasons. `midwatch doctor` looks at Kafka, Redis and the "
        "schedulers.",
    ),
    Alert(
        f"{PREFIX}StandsStill",
        f"time() - {series(n.ALIVE)} > {LOOKED_S}",
        "1m",
        "page",
        "{{ $labels.job }} has not kept up for {{ $value | humanizeDuration }}.",
        "Look at its lag and its log. If it hangs, restart it: its state is in Redis.",
    ),
    Alert(
        f"{PREFIX}LinesLate",
        f"{quantile(0.99, n.LINE_AGE, window='5m')} > 30",
        "5m",
        "warning",
        "Lines are matched {{ $value | humanizeDuration }} after they were read.",
        "Look at the lag of match. Start more match workers, or look for a rule that hits on every line.",
    ),
    Alert(
        f"{PREFIX}PartitionStopped",
        f"sum {by(JOB, n.DESTINATION)} ({series(n.STOPPED)}) > 0",
        "0s",
        "page",
        "{{ $labels.job }} holds {{ $value }} partitions of {{ $labels.messaging_destination_name }}: a "
        "newer record lies there.",
        "Upgrade this worker: a newer midwatch wrote a record that this one cannot read. Nothing is skipped.",
    ),
    Alert(
        f"{PREFIX}DeadLetters",
        _new(n.REFUSED, n.DESTINATION, n.KIND),
        "0s",
        "warning",
        "{{ $value | humanize }} records of {{ $labels.messaging_destination_name }} could not be used: "
        "{{ $labels.kind }}.",
        "Read the dead-letter topic. Find who wrote there, and whether its version fits.",
    ),
    Alert(
        f"{PREFIX}RulesRefused",
        _new(n.RULES_REFUSED, JOB),
        "0s",
        "warning",
        "{{ $labels.job }} refused rules; the last good ones stay in force.",
        "Run `midwatch rules check` on what was pushed or edited last, and push it again.",
    ),
    Alert(
        f"{PREFIX}JobsLeftOut",
        f"sum {by(JOB)} ({series(n.JOBS_LEFT_OUT)}) > 0",
        "5m",
        "warning",
        "{{ $value }} jobs have no series. They are watched all the same.",
        "Raise `telemetry.runs`, or start more workers.",
    ),
    Alert(
        f"{PREFIX}TracesLate",
        f"{series(n.TELEMETRY_LATE)} > 100",
        "10m",
        "warning",
        "{{ $value }} records wait for the collector.",
        "Look whether the collector answers. Nothing else waits for it.",
    ),
    Alert(
        f"{PREFIX}ChannelFails",
        f"{series(n.CHANNEL_FAILS)} == 1",
        "5m",
        "warning",
        "The channel {{ $labels.channel }} takes no messages.",
        "`midwatch messages test --channel NAME` gives its answer. Its messages go to the other channels.",
    ),
    Alert(
        f"{PREFIX}JobUnknown",
        _in_state("unknown"),
        "5m",
        "warning",
        "{{ $labels.run }} is not seen well enough to judge it.",
        "`midwatch why JOB` says what is missing: heartbeats, nodes, or the watch itself.",
    ),
    Alert(
        f"{PREFIX}NodesMissing",
        f"{series(n.NODES_MISSING)} > 0",
        "2m",
        "warning",
        "{{ $value }} nodes of {{ $labels.run }} send no heartbeat.",
        "Look at these nodes and their shippers: the job's dashboard lists the age of each heartbeat.",
    ),
    Alert(
        f"{PREFIX}NoProgress",
        f"({series(n.PROGRESS_AGE)} > {STUCK_S}) and {on(n.RUN)} ({_in_state('watched')})",
        "0s",
        "page",
        "{{ $labels.run }} has made no step for {{ $value | humanizeDuration }}.",
        "`midwatch why JOB` shows its last lines. Long evaluations want a limit of their own.",
    ),
    Alert(
        f"{PREFIX}LossSpike",
        # A short spike is over before Alertmanager has waited for its group, and would never be sent.
        f"max_over_time({series(n.OPEN_FINDING, (n.KIND, '=', 'loss_spike'))}[5m]) > 0",
        "0s",
        "warning",
        "The loss of {{ $labels.run }} is more than twice its median of late.",
        "Look at the loss and at the step where it began. midwatch does not restart a job for this.",
    ),
    Alert(
        f"{PREFIX}JobFailed",
        _in_state("failed"),
        "5m",
        "page",
        "{{ $labels.run }} has failed and runs no more.",
        "`midwatch why JOB` shows the cause and why it was not restarted.",
    ),
    Alert(
        f"{PREFIX}BudgetSpent",
        f"{series(n.BUDGET_LEFT)} == 0",
        "0s",
        "warning",
        "{{ $labels.run }} has no restart left.",
        "Mend the cause that comes again. `midwatch why JOB` lists its attempts.",
    ),
    Alert(
        f"{PREFIX}RestartStorm",
        f"delta({series(n.RESTARTS)}[30m]) >= 5",
        "0s",
        "page",
        "{{ $labels.run }} was restarted {{ $value | humanize }} times within 30 minutes.",
        "`midwatch disarm JOB` stops the restarts. Then look for what the incidents have in common.",
    ),
    Alert(
        f"{PREFIX}CommandFailed",
        _new(n.OUTCOMES, n.ACTION, n.OUTCOME, matchers=((n.OUTCOME, "=~", "failed|expired"),)),
        "0s",
        "page",
        "A command to {{ $labels.action }} has {{ $labels.outcome }}.",
        "`midwatch why JOB` gives the scheduler's words. The job may need a start by hand.",
    ),
)
