"""What detect remembers of a job: one blob for the job, one for each of its nodes.

The blobs are JSON with defaults for every field, so a blob of an older version is read as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from midwatch.rules.detectors.loss_spike import LossWindow
from midwatch.rules.detectors.silence import Pulse
from midwatch.streams.records import (
    Finding,
    Held,
    Hit,
    HitCount,
    Incident,
    Line,
    Loop,
    Phase,
    SchedulerFact,
    SpecEvent,
    Spent,
)

VERSION = 1


@dataclass(frozen=True, slots=True)
class NodeState:
    """One node of the present attempt.

    `judged` maps a file generation to the highest byte offset judged; it outlives the attempt, because a
    new shipper may read an old file again. `offsets` holds the last differences between the node's wall
    clock and the append time (seconds); the largest is the clock's offset.
    """

    incarnation: str = ""
    pulse: Pulse = field(default_factory=Pulse)
    judged: Mapping[str, int] = field(default_factory=dict)
    offsets: tuple[float, ...] = ()
    logged_ms: int = 0  # append time on `logs` of its latest beat
    seen_ms: int = 0  # up to where (append time on `logs`) this node vouches that all its lines were sent
    final: bool = False
    alive: bool | None = None
    missing: bool = False
    lines: int = 0  # that its shipper has read since its start


@dataclass(frozen=True, slots=True)
class JobState:
    """A job and its present attempt. `attempt` 0: nothing has run yet."""

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
    )  # by kind and file, while not known to have trained
    progress_nodes: tuple[str, ...] = ()
    progress_line: Line | None = None  # the latest sign of progress, as it was printed
    left: Hit | None = None  # a process that said it is done, while the job as a whole was not
    quorum_held: bool = True
    losses: LossWindow = field(default_factory=LossWindow)
    held: tuple[Held, ...] = ()
    noted: tuple[Held, ...] = ()  # no evidence by themselves; they may explain an end that nothing else does
    counts: tuple[HitCount, ...] = ()
    succeeded: bool = False
    bundle: str = ""
    scheduler: SchedulerFact | None = None
    ended_ms: int | None = None
    stalled: float | None = None  # seconds of silence when the stall was found
    commanded: str = ""  # id of our own accepted command on this attempt
    incident: Incident | None = None
    incidents: int = 0
    findings: Mapping[str, Finding] = field(default_factory=dict)
    due_ms: int | None = None
    checkpoint_step: int | None = None  # from which the attempt went on, by the executor's word
    whole: bool = True  # the job is known from its start, or from a carry on
    awaited_ms: int = 0  # since when its nodes are waited for, where that is later than its start
    queued: bool = False  # by the scheduler's word it waits for its nodes: nobody can speak yet
    carry_ms: int | None = None  # when the next daily carry is due
    stopped: tuple[str, ...] = ()  # rules whose watch a line has ended
    rates: Mapping[str, Spent] = field(default_factory=dict)  # of rules that may hit only so often


@dataclass(frozen=True, slots=True)
class Job:
    """A job as one value: its state and its nodes by name."""

    state: JobState
    nodes: Mapping[str, NodeState] = field(default_factory=dict)
