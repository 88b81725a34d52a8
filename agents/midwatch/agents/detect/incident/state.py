"""The state of a job in detect: one blob for the job, one for each of its nodes.

The blobs are JSON with defaults for every field, so this version reads blobs of older versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from midwatch.agents.detect.incident.held_index import HeldIndex
from midwatch.rules.detectors.loss_spike import LossWindow
from midwatch.rules.detectors.silence import Pulse
from midwatch.streams.records import (
    DetectorMemory,
    Finding,
    Held,
    Hit,
    HitCount,
    Incident,
    Line,
    Loop,
    Phase,
    Resumption,
    SchedulerFact,
    SpecEvent,
    Spent,
)

VERSION = 1


@dataclass(frozen=True, slots=True)
class NodeState:
    """One node of the present attempt.

    `judged` maps a file generation to the highest byte offset judged. It outlives the attempt, because a new
    shipper may read an old file again. `offsets` holds the last differences between the node's wall clock and
    the append time (seconds). The largest is the clock's offset.
    """

    incarnation: str = ""
    pulse: Pulse = field(default_factory=Pulse)
    judged: Mapping[str, int] = field(default_factory=dict)
    offsets: tuple[float, ...] = ()
    logged_ms: int = 0  # append time on `logs` of its latest heartbeat
    seen_ms: int = 0  # the node has sent all its lines up to this append time on `logs`
    final: bool = False
    alive: bool | None = None
    missing: bool = False
    lines: int = 0  # lines that its shipper has read since the shipper's start


@dataclass(frozen=True, slots=True)
class JobState:
    """A job and its present attempt. `attempt` 0: no attempt has run yet."""

    version: int = VERSION
    job: str = ""
    attempt: int = 0
    incarnation: str = ""
    incarnations: Mapping[str, int] = field(default_factory=dict)
    started_by: Mapping[str, str] = field(default_factory=dict)
    started_ms: int = 0
    nodes: int = 1
    spec: SpecEvent | None = None
    phase: Phase = "startup"
    step: int | None = None
    total: int | None = None
    trained: bool = False  # known by a step, a loss, a batch of an epoch, a checkpoint, a count that climbed
    loops: Mapping[str, Loop] = field(
        default_factory=dict
    )  # by kind and file, while not known to have trained; those with a loss behind a success too
    progress_nodes: tuple[str, ...] = ()
    progress_line: Line | None = None  # the latest progress line as printed
    left: Hit | None = None  # a process reported its end while the job as a whole went on
    quorum_held: bool = True
    losses: LossWindow = field(default_factory=LossWindow)
    held: tuple[Held, ...] = ()
    noted: tuple[
        Held, ...
    ] = ()  # no evidence by themselves; see `midwatch.agents.detect.diagnosis.hindsight`
    counts: tuple[HitCount, ...] = ()
    succeeded: bool = False
    success_line: Line | None = None  # in which the job said so
    bundle: str = ""
    scheduler: SchedulerFact | None = None
    ended_ms: int | None = None
    stalled: float | None = None  # seconds of silence when the stall was found
    commanded: str = ""  # id of the accepted command on this attempt
    incident: Incident | None = None
    incidents: int = 0
    findings: Mapping[str, Finding] = field(default_factory=dict)
    due_ms: int | None = None
    checkpoint_step: int | None = None  # of the checkpoint that the executor told the attempt to load
    resumption: Resumption = field(default_factory=Resumption)
    whole: bool = True  # the history begins at the job's start or at a snapshot
    awaited_ms: int = 0  # start of the wait for its nodes, if that is later than `started_ms`
    queued: bool = False  # the scheduler reports that the job waits for nodes, so no node can send yet
    carry_ms: int | None = None  # when the next daily snapshot is due
    shown_ms: int = 0  # append time of the last record of its progress: hits or a snapshot
    stopped: tuple[str, ...] = ()  # rules whose watch has ended
    rates: Mapping[str, Spent] = field(default_factory=dict)  # of rules with a rate limit
    detectors: Mapping[str, DetectorMemory] = field(default_factory=dict)  # of foreign detectors


@dataclass(frozen=True, slots=True)
class Job:
    """A job as one value: its state and its nodes by name."""

    state: JobState
    nodes: Mapping[str, NodeState] = field(default_factory=dict)
    index: HeldIndex = field(default_factory=HeldIndex, repr=False, compare=False)
    """Of the held lines. It changes the speed of the next turn, never its result."""
