"""The snapshot: what a fold of `events` must know if it begins in the middle of a job's history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec import UNSET, UnsetType

from midwatch.streams.records.bounds import Count, Duration, JobText, Millis, Name, NodeName, Nodes, Whole
from midwatch.streams.records.events import Hit, Line, SchedulerFact, SpecEvent
from midwatch.streams.records.incidents import Finding, Incident
from midwatch.streams.records.words import Phase, Unit


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop that prints no step. `at` is the highest that it counted to: one number, or an epoch and its
    batch. `rises` is how often it rose."""

    at: tuple[float, ...] = ()
    rises: Whole = 0


@dataclass(frozen=True, slots=True)
class Held:
    """A line held against the attempt, and the last step that the job reached before it.

    `loops` holds what loops that print no step counted to after the line, by the kind of their count. Earlier
    versions knew one loop, whatever its kind: it counted to `count` and rose `rises` times.
    """

    hit: Hit
    step: Whole
    logged_ms: Millis = 0
    count: float | None = None
    rises: Whole = 0
    loops: Mapping[str, Loop] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Spent:
    """The hits of a rule with a rate limit since a time. The time is that of its lines, in seconds."""

    since: float
    hits: Count


@dataclass(frozen=True, slots=True)
class Resumption:
    """What shows where an attempt went on. Steps are those that the job prints in training.

    `interval`: how far apart this attempt's last two steps were, 0 if unknown. `from_zero`: an attempt that
    was told no checkpoint began at step 0. `written_ms`: when the checkpoint was written, 0 if unknown.
    Where the checkpoint counts epochs, those that the job prints are compared, not its steps.
    """

    told_step: Whole | None = None  # the number of the checkpoint that the attempt was told to load
    first_step: Whole | None = None
    interval: Count = 0
    step_before: Whole | None = None  # the last step of the attempts before
    interval_before: Count = 0
    from_zero: bool = False
    written_ms: Millis = 0
    judged: bool = False  # it was said where the attempt went on
    told_path: str = ""
    unit: Unit = "step"  # of `told_step`
    first_epoch: Whole | None = None
    epoch: Whole | None = None  # the last one that this attempt printed
    epoch_before: Whole | None = None
    first_step_ms: Millis | UnsetType = UNSET  # append time; an older midwatch kept none
    worked_before: bool = False  # an earlier start of the same kind made a step


@dataclass(frozen=True, slots=True)
class Member:
    """One node. A node that is not `present` sent records only in earlier attempts.

    `judged`: file generation -> highest byte offset judged. `clock`: seconds that the node's wall clock was
    ahead of the append time.
    """

    name: NodeName
    present: bool
    interval: Duration = 5.0
    clock: float | None = None
    final: bool = False
    missing: bool = False
    judged: Mapping[str, Count] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DetectorMemory:
    """What a foreign detector remembers of one attempt: its state as JSON, and the version that wrote it.

    `failed`: it raised, or gave what no detector may give, and is not asked again.
    """

    version: str
    state: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A job's history for a fold that begins after it (`docs/design.md`, Snapshots).

    Detect writes a snapshot at each attempt's start, and daily while the job lives. Without progress it
    writes one every ten minutes. A snapshot sums up all earlier records of the job. For a job with very many
    nodes or lines it leaves out the largest parts. Then detect judges resent lines again and learns node
    names anew from heartbeats.
    """

    job: JobText
    attempt: Count
    incarnations: Mapping[Name, Count]
    spec: SpecEvent | None
    checkpoint_step: Count | None  # from which the attempt resumed, if midwatch started it
    incarnation: Name = ""  # of the current attempt
    started_by: Mapping[str, str] = field(default_factory=dict)
    started_ms: Millis = 0
    nodes: Nodes = 1
    phase: Phase = "startup"
    step: Whole | None = None
    total: Whole | None = None
    trained: bool = False
    progress_nodes: tuple[str, ...] = ()
    progress_line: Line | None = None
    left: Hit | None = None
    losses: tuple[float, ...] = ()
    spiking: bool = False
    held: tuple[Held, ...] = ()
    noted: tuple[Held, ...] = ()
    succeeded: bool = False
    bundle: str = ""
    scheduler: SchedulerFact | None = None
    ended_ms: Millis | None = None
    stalled: float | None = None
    commanded: str = ""
    incident: Incident | None = None
    incidents: Count = 0
    findings: Mapping[str, Finding] = field(default_factory=dict)
    members: tuple[Member, ...] = ()
    stopped: tuple[str, ...] = ()
    rates: Mapping[str, Spent] = field(default_factory=dict)
    detectors: Mapping[str, DetectorMemory] = field(default_factory=dict)
    resumption: Resumption = field(default_factory=Resumption)
