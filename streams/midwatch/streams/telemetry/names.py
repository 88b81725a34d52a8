"""Every name that midwatch exports: metrics with unit and attributes, spans, log events. Pure.

A name stands here once and nowhere else. `docs/telemetry.md` is made from this module. Names of
OpenTelemetry's semantic conventions are used where they exist, of the version in `SEMANTIC_CONVENTIONS`.
`dl.*` and `slurm.*` are named as NVIDIA's NeMo Lens names them, so that one backend can join both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

SEMANTIC_CONVENTIONS: Final = "1.44.0"
"""Version of the semantic conventions; those of messaging are still marked as in development there."""
SCHEMA_URL: Final = f"https://opentelemetry.io/schemas/{SEMANTIC_CONVENTIONS}"
SCOPE: Final = "midwatch"

Kind = Literal["counter", "gauge", "histogram"]

# -- attributes

RUN: Final = "run"
"""A job's whole name, `cluster:user/run`. The only attribute of a metric that names a job."""
NODE: Final = "node"
STATE: Final = "state"
PHASE: Final = "phase"
ACTION: Final = "action"
REASON: Final = "reason"
OUTCOME: Final = "outcome"
CHANNEL: Final = "channel"
KIND: Final = "kind"
RULE: Final = "rule"
CAPTURE: Final = "capture"
DESTINATION: Final = "messaging.destination.name"
PARTITION: Final = "messaging.destination.partition.id"
GROUP: Final = "messaging.consumer.group.name"
SYSTEM: Final = "messaging.system"
OPERATION: Final = "messaging.operation.name"
HOST: Final = "host.name"
SERVICE: Final = "service.name"
NAMESPACE: Final = "service.namespace"
INSTANCE: Final = "service.instance.id"
VERSION: Final = "service.version"
ERROR_TYPE: Final = "error.type"
SLURM_JOB: Final = "slurm.job.id"
SLURM_CLUSTER: Final = "slurm.cluster.name"
RANK: Final = "dl.rank"
ITERATION: Final = "dl.iteration"
ATTEMPT: Final = "midwatch.attempt"
INCARNATION: Final = "midwatch.incarnation"
INCIDENT: Final = "midwatch.incident.id"
REVISION: Final = "midwatch.incident.revision"
MODE: Final = "midwatch.mode"
FAMILY: Final = "midwatch.family"
TRANSIENT: Final = "midwatch.transient"
VERDICT_RULE: Final = "midwatch.rule"
BUNDLE: Final = "midwatch.bundle"
POLICY: Final = "midwatch.policy"
DECISION: Final = "midwatch.decision.action"
DECISION_REASON: Final = "midwatch.decision.reason"
ARMED: Final = "midwatch.armed"
COMMAND: Final = "midwatch.command.id"
COMMAND_STATE: Final = "midwatch.command.state"
SUCCESSOR: Final = "midwatch.successor"
CHECKPOINT_STEP: Final = "midwatch.checkpoint.step"
FILE: Final = "log.file.path"
LINE: Final = "midwatch.line.number"
LINE_TEXT: Final = "log.record.original"

ATTRIBUTES: Final = {
    RUN: "the job's whole name, `cluster:user/run`",
    NODE: "a node of the job",
    STATE: "`watched`, `failed`, `unknown` or `over`",
    PHASE: "`startup`, `compile`, `training`, `evaluation` or `checkpoint`",
    ACTION: "`restart`, `cancel`, `stop`, `hold` or `none`",
    REASON: "one of a fixed set of words, never free text",
    OUTCOME: "`accepted`, `refused`, `expired`, `done` or `failed`",
    CHANNEL: "a channel of messages, as the settings name it",
    KIND: "the kind of a refusal, or of a finding without its node",
    RULE: "the name of a rule",
    CAPTURE: "the name of a rule's capture",
    DESTINATION: "a topic",
    PARTITION: "a partition's number",
    GROUP: "a consumer group",
    SYSTEM: "always `kafka`",
    OPERATION: "`send`, `process` or `settle`",
    HOST: "a node of the job",
    SERVICE: "`midwatch-` and the process, such as `midwatch-detect`",
    NAMESPACE: "the start of every topic's name",
    INSTANCE: "host and process, or the worker's stable id",
    VERSION: "the version of midwatch",
    ERROR_TYPE: "the verdict's error type",
    SLURM_JOB: "SLURM's id of the job",
    SLURM_CLUSTER: "the first part of the job's name, for a job on SLURM",
    RANK: "the rank where the failure began",
    ITERATION: "the step at which the failure began",
    ATTEMPT: "which start of the job",
    INCARNATION: "the start, as its scheduler tells it from another",
    INCIDENT: "the incident",
    REVISION: "the revision of its verdict",
    MODE: "how the attempt ended",
    FAMILY: "the verdict's family",
    TRANSIENT: "whether the same start may succeed next time",
    VERDICT_RULE: "the rule that named the cause",
    BUNDLE: "the hash of the bundle that judged",
    POLICY: "the policy that decided",
    DECISION: "the action",
    DECISION_REASON: "the reason, as a person reads it",
    ARMED: "whether midwatch was allowed to act for the job",
    COMMAND: "the command",
    COMMAND_STATE: "what became of the command",
    SUCCESSOR: "the scheduler's own id of the new start",
    CHECKPOINT_STEP: "the step of the checkpoint that the new start was told to load",
    FILE: "the file of the root line",
    LINE: "its number in that file",
    LINE_TEXT: "its text",
}
"""What each attribute holds."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. `attributes` are all that its series may have; `unit` is in UCUM."""

    name: str
    kind: Kind
    unit: str
    what: str
    attributes: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    of: str = ""  # the processes that export it


_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_WORKERS: Final = "match, detect, decide, trace, messages"
ALL_BUT_SHIP: Final = "all but ship"

RECORDS: Final = Metric(
    "messaging.client.consumed.messages", "counter", "{message}", "records read and handled",
    (SYSTEM, OPERATION, GROUP), of=_WORKERS,
)  # fmt: skip
SENT: Final = Metric(
    "messaging.client.sent.messages", "counter", "{message}", "records sent and acknowledged by Kafka",
    (SYSTEM, OPERATION, GROUP), of=ALL_BUT_SHIP,
)  # fmt: skip
LAG: Final = Metric(
    "midwatch.lag", "gauge", "{message}", "records of an owned partition that are not handled yet",
    (DESTINATION, PARTITION), of=_WORKERS,
)  # fmt: skip
STOPPED: Final = Metric(
    "midwatch.partition.stopped", "gauge", "{partition}", "partitions that wait for a newer worker",
    (DESTINATION,), of=_WORKERS,
)  # fmt: skip
REFUSED: Final = Metric(
    "midwatch.dead_letters", "counter", "{message}", "records that could not be used",
    (DESTINATION, KIND), of=ALL_BUT_SHIP,
)  # fmt: skip
RULES_REFUSED: Final = Metric(
    "midwatch.rules.refused", "counter", "{bundle}", "pushes and edits of rules that could not be used",
    of=_WORKERS,
)  # fmt: skip
READY: Final = Metric(
    "midwatch.ready",
    "gauge",
    "{process}",
    "1 while this process sees all that it must see, else 0",
    of=ALL_BUT_SHIP,
)
ALIVE: Final = Metric(
    "midwatch.watch.last_look", "gauge", "s",
    "the dead-man metric: Unix time at which this process last saw that it keeps up", of=ALL_BUT_SHIP,
)  # fmt: skip
BACKLOG: Final = Metric(
    "midwatch.shipper.backlog", "gauge", "By", "bytes read or waiting that Kafka has not acknowledged",
    (RUN, NODE), of="ship",
)  # fmt: skip
LINES_SHIPPED: Final = Metric(
    "midwatch.shipper.lines", "counter", "{line}", "lines read, those read again after a loss counted again",
    of="ship",
)  # fmt: skip
LINES: Final = Metric("midwatch.line.matched", "counter", "{line}", "lines that were matched", of="match")
HITS: Final = Metric("midwatch.rule.hits", "counter", "{hit}", "hits of rules", (RULE,), of="match")
LINE_AGE: Final = Metric(
    "midwatch.line.age", "histogram", "s", "time from reading a chunk's last line to its match",
    buckets=_SECONDS, of="match",
)  # fmt: skip
CAPTURED: Final = Metric(
    "midwatch.rule.capture", "gauge", "{value}", "latest number that a capture took which its rule exports",
    (RUN, RULE, CAPTURE), of="match",
)  # fmt: skip
PRINTED_LOSS: Final = Metric(
    "midwatch.job.loss.printed", "gauge", "{loss}", "latest finite loss that a line printed, spikes too",
    (RUN,), of="match",
)  # fmt: skip
CHECKPOINT_AT: Final = Metric(
    "midwatch.job.checkpoint.last", "gauge", "s", "Unix time of the latest line that begins a checkpoint",
    (RUN,), of="match",
)  # fmt: skip
JOB_STATE: Final = Metric(
    "midwatch.job.state", "gauge", "{job}",
    "1 for the state that holds, else 0; a job that is not seen well enough is `unknown`, never `watched`",
    (RUN, STATE), of="detect",
)  # fmt: skip
JOB_PHASE: Final = Metric(
    "midwatch.job.phase", "gauge", "{job}", "1 for the phase that the job's lines tell, else 0", (RUN, PHASE),
    of="detect",
)  # fmt: skip
OPEN_FINDING: Final = Metric(
    "midwatch.job.finding", "gauge", "{finding}", "open findings of the present attempt", (RUN, KIND),
    of="detect",
)  # fmt: skip
LOADED: Final = Metric(
    "midwatch.job.checkpoint.loaded", "gauge", "{step}",
    "number of the checkpoint that the present attempt was told to load", (RUN,), of="detect",
)  # fmt: skip
STEP: Final = Metric("midwatch.job.step", "gauge", "{step}", "latest step", (RUN,), of="detect")
LOSS: Final = Metric("midwatch.job.loss", "gauge", "{loss}", "latest healthy loss", (RUN,), of="detect")
THROUGHPUT: Final = Metric(
    "midwatch.job.throughput", "gauge", "{step}/s",
    "steps a second over the last minutes of this attempt", (RUN,), of="detect",
)  # fmt: skip
PROGRESS_AGE: Final = Metric(
    "midwatch.job.progress.age", "gauge", "s", "time since the last step was seen", (RUN,), of="detect"
)
SILENCE: Final = Metric(
    "midwatch.job.silence", "gauge", "s", "silence as heartbeats count it; a stall is judged by it",
    (RUN,), of="detect",
)  # fmt: skip
ATTEMPTS: Final = Metric("midwatch.job.attempt", "gauge", "{attempt}", "present attempt", (RUN,), of="detect")
HEARTBEAT_AGE: Final = Metric(
    "midwatch.heartbeat.age",
    "gauge",
    "s",
    "time since a node's last heartbeat",
    (RUN, NODE),
    of="detect",
)
NODES_MISSING: Final = Metric(
    "midwatch.job.nodes.missing", "gauge", "{node}", "nodes of the attempt that send no heartbeat",
    (RUN,), of="detect",
)  # fmt: skip
JOBS_LEFT_OUT: Final = Metric(
    "midwatch.job.left_out", "gauge", "{job}", "jobs without series, because the setting allows no more",
    of="detect, decide",
)  # fmt: skip
INCIDENTS: Final = Metric(
    "midwatch.incidents", "counter", "{incident}", "incidents that settled, each once", (ERROR_TYPE,),
    of="detect",
)  # fmt: skip
FINDINGS: Final = Metric("midwatch.findings", "counter", "{finding}", "findings opened", (KIND,), of="detect")
DECISIONS: Final = Metric(
    "midwatch.decisions", "counter", "{decision}", "decisions, also those to do nothing", (ACTION, REASON),
    of="decide",
)  # fmt: skip
DECIDE_TIME: Final = Metric(
    "midwatch.decision.duration", "histogram", "s", "time from the root line's arrival to the decision",
    buckets=_SECONDS, of="decide",
)  # fmt: skip
BUDGET_LEFT: Final = Metric(
    "midwatch.job.restarts.left", "gauge", "{restart}", "restarts that the last decision left", (RUN,),
    of="decide",
)  # fmt: skip
RESTARTS: Final = Metric(
    "midwatch.job.restarts", "gauge", "{restart}", "restarts that the executor accepted", (RUN,), of="decide"
)
OUTCOMES: Final = Metric(
    "midwatch.commands", "counter", "{command}", "what became of commands", (ACTION, OUTCOME), of="executor"
)
COMMAND_TIME: Final = Metric(
    "midwatch.command.duration", "histogram", "s", "from a command's claim to its end", (ACTION, OUTCOME),
    buckets=_SECONDS, of="executor",
)  # fmt: skip
COMMANDS_OPEN: Final = Metric(
    "midwatch.commands.open", "gauge", "{command}", "commands that were accepted and are not finished",
    of="executor",
)  # fmt: skip
TELEMETRY_LATE: Final = Metric(
    "midwatch.trace.waiting", "gauge", "{message}", "records whose spans the collector has not taken yet",
    of="trace",
)  # fmt: skip
SPANS: Final = Metric("midwatch.trace.spans", "counter", "{span}", "spans that a collector took", of="trace")

NOTICES: Final = Metric(
    "midwatch.notices", "counter", "{notice}", "tries to hand a message to a channel, and those given up",
    (CHANNEL, OUTCOME), of="messages",
)  # fmt: skip
CHANNEL_FAILS: Final = Metric(
    "midwatch.channel.failing", "gauge", "{channel}", "1 while a channel refuses messages, else 0",
    (CHANNEL,), of="messages",
)  # fmt: skip

METRICS: Final = tuple(value for value in globals().values() if isinstance(value, Metric))

# -- spans, in the order of an incident


@dataclass(frozen=True, slots=True)
class SpanName:
    """One kind of span. `service` is the process whose work it shows."""

    name: str
    service: str
    parent: str
    what: str


INCIDENT_SPAN: Final = SpanName("incident", "detect", "", "from the root line, or the end, to the verdict")
LINE_SPAN: Final = SpanName("line", "ship", "incident", "from the root line's time to its arrival on `logs`")
HIT_SPAN: Final = SpanName("hit", "match", "incident", "from that arrival to the incident's opening")
SETTLE_SPAN: Final = SpanName(
    "settle", "detect", "incident", "from the attempt's end to the verdict: the wait for the last lines"
)
REVISION_SPAN: Final = SpanName("revision", "detect", "incident", "a later verdict of the same incident")
DECISION_SPAN: Final = SpanName("decision", "decide", "incident", "from the verdict to the written decision")
COMMAND_SPAN: Final = SpanName("command", "decide", "decision", "the moment at which the command was sent")
ANSWER_SPAN: Final = SpanName(
    "answer", "executor", "command", "from the command's sending to the executor's first answer"
)
EFFECT_SPAN: Final = SpanName(
    "outcome", "executor", "command", "from the answer to the command's end; the new start hangs under it"
)
SPANS_OF_INCIDENT: Final[tuple[SpanName, ...]] = tuple(
    value for value in globals().values() if isinstance(value, SpanName)
)

# -- log events

INCIDENT_EVENT: Final = "midwatch.incident"
FINDING_EVENT: Final = "midwatch.finding"
DECISION_EVENT: Final = "midwatch.decision"
OUTCOME_EVENT: Final = "midwatch.outcome"
EVENTS: Final = {
    INCIDENT_EVENT: "a settled incident; its severity is ERROR for a failure, else INFO",
    FINDING_EVENT: "a finding that opened or cleared",
    DECISION_EVENT: "a decision with its reason",
    OUTCOME_EVENT: "what became of a command",
}
