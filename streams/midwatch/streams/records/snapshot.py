"""The carry: what a fold of `events` that begins in the middle of a job's history must know of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from midwatch.streams.records.bounds import Count, Duration, JobText, Millis, Name, NodeName, Nodes, Whole
from midwatch.streams.records.events import Hit, Line, SchedulerFact, SpecEvent
from midwatch.streams.records.incidents import Finding, Incident
from midwatch.streams.records.words import Phase


@dataclass(frozen=True, slots=True)
class Held:
    """A line held against the attempt, and the last step known to have been reached before it.

    `count` is the highest that a loop which prints no step has counted to behind the line, `rises` how often
    it rose there.
    """

    hit: Hit
    step: Whole
    logged_ms: Millis = 0
    count: float | None = None
    rises: Whole = 0


@dataclass(frozen=True, slots=True)
class Spent:
    """How often a rule of limited rate has hit since a time (of its lines, in seconds)."""

    since: float
    hits: Count


@dataclass(frozen=True, slots=True)
class Member:
    """One node. `judged`: file generation -> highest byte offset judged. `clock`: seconds that the node's
    wall clock was ahead of the append time. A node that is not `present` spoke only in earlier attempts.
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
    """What a detector of others remembers of one attempt: its state as JSON, and the version that wrote it.

    `failed`: it raised, or gave what no detector may give, and is not asked again.
    """

    version: str
    state: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Detect writes one at each attempt's start, and daily while the job lives (`docs/design.md`, Snapshots).

    It sums up all records of the job below it. Of a job with very many nodes or lines the largest parts are
    left out: then resent lines are judged again, and node names are learnt anew from their beats.
    """

    job: JobText
    attempt: Count
    incarnations: Mapping[Name, Count]
    spec: SpecEvent | None
    checkpoint_step: Count | None  # from which the attempt went on, if its start was ours
    incarnation: Name = ""  # of the present attempt
    started_by: Mapping[str, str] = field(default_factory=dict)
    started_ms: Millis = 0
    nodes: Nodes = 1
    phase: Phase = "startup"
    step: Whole | None = None
    total: Whole | None = None
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
