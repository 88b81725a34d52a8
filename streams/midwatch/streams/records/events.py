"""What detect folds: hits, specs, and facts from the scheduler, the executor and people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from midwatch.streams.records.bounds import Count, Duration, JobText, Millis, Name, Nodes, PolicyText, Whole
from midwatch.streams.records.logs import CheckpointChoice, Origin
from midwatch.streams.records.words import Action, Mode, Phase, Role, Shows, Unit

_WAITING = frozenset(
    {
        "PENDING",
        "REQUEUE_FED",
        "REQUEUE_HOLD",
        "RESV_DEL_HOLD",
        "SPECIAL_EXIT",
        "POWER_UP_NODE",
        "CONFIGURING",
    }
)
"""SLURM's states of a job that has no processes yet."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of evidence: its place, and at most 2 KiB of its text."""

    text: str
    path: str
    number: Count
    offset: Count
    time: float  # corrected wall clock: printed in the line if plausible, else when it was read
    node: str = ""
    rank: Count | None = None
    claimed_rank: Count | None = None  # the rank that the text claims: evidence, not identity
    raw: bytes | None = None  # the raw bytes, if `text` had to replace some

    @property
    def file(self) -> tuple[str, str]:
        """The file in which `number` counts. Two nodes may have different files with the same path."""
        return (self.node, self.path)


@dataclass(frozen=True, slots=True)
class Rate:
    """The rate at which a rule's hits count against the job: `hits` in `seconds` of its lines' time."""

    hits: Count
    seconds: Duration


@dataclass(frozen=True, slots=True)
class Hit:
    """A match of a rule on a line.

    It carries the rule's role, type and transience, so that no reader has to look up the rule.
    """

    rule: str
    role: Role
    error_type: str
    subsystem: str
    severity: str
    transient: bool | None
    line: Line
    end: Count  # offset in the file after the line
    generation: str
    mode: Mode | None = None
    phase: Phase | None = None
    remedy: str = ""
    captures: Mapping[str, str] = field(default_factory=dict)
    fallback: bool = False  # the rule knows only that something failed
    excuses: Count | None = None  # number of the line in this file whose exception was only a probe
    limit: Rate | None = None  # the limit of the rule
    aside: str = ""  # why the line reports no failure, although its rule looks for one; "" if it does


@dataclass(frozen=True, slots=True)
class HitCount:
    """Further hits of one rule on one rank in one chunk, beyond those sent in full. Evidence only."""

    rule: str
    rank: Count | None
    count: Count
    first_number: Count
    last_number: Count
    path: str


@dataclass(frozen=True, slots=True)
class Stop:
    """A line that ends the watch of a rule. No later hit of the rule counts in this attempt."""

    rule: str
    path: str
    generation: str
    number: Count
    end: Count
    time: float  # as in a `Line`


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress lines of one file in one chunk, as columns of equal length. Captures stay strings.

    `shows` is the rule's word on what they prove; `life`: that the job printed something, and no more.
    """

    path: str
    generation: str
    rule: str
    phase: Phase
    steps: tuple[Whole, ...]
    ends: tuple[Count, ...]  # offset after each line; detect drops lines below the judged mark
    numbers: tuple[Count, ...]
    times: tuple[float, ...]
    losses: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()  # of a line without a step: the rising count of its loop, or "epoch:batch"
    grad_norms: tuple[str, ...] = ()
    total: Whole | None = None  # the last step that the job plans, if the line names it
    rank: Count | None = None
    last: Line | None = None  # the last of these lines, cut short; it illustrates a hang
    shows: Shows = "step"

    def __post_init__(self) -> None:
        """Raises ValueError if the columns differ in length."""
        lengths = {len(self.steps), len(self.ends), len(self.numbers), len(self.times)}
        optional = {len(self.losses), len(self.counts), len(self.grad_norms)} - {0}
        if len(lengths | optional) > 1:
            raise ValueError("the columns of a progress record are not of equal length")


@dataclass(frozen=True, slots=True)
class Hits:
    """All that match found in one chunk, in the order of the lines. At most one record for each chunk."""

    origin: Origin
    bundle: str
    hits: tuple[Hit, ...] = ()
    counts: tuple[HitCount, ...] = ()
    progress: tuple[Progress, ...] = ()
    ends: Mapping[str, Count] = field(default_factory=dict)  # generation -> offset after its last line
    logged_ms: Millis = 0  # append time of the chunk on the topic `logs`
    stops: tuple[Stop, ...] = ()


@dataclass(frozen=True, slots=True)
class SpecEvent:
    """The part of a newly written spec that detect and decide need. The spec itself stays in `specs`.

    A job may bring its own policy. Then `policy` is its name, and `policy_text` is the text of a policy file.
    `any_line`: every line that the job prints ends its silence, not only progress.
    """

    job: JobText
    spec: str  # hash
    policy: str
    armed: bool
    nodes: Nodes
    checkpoint_directory: str
    limits: Mapping[str, Duration] = field(default_factory=dict)  # seconds of silence allowed, by phase
    max_restarts: Count | None = None
    incarnation: Name = ""  # of the start that `run` or `adopt` made; "" if not yet known
    policy_text: PolicyText = ""
    any_line: bool = False


@dataclass(frozen=True, slots=True)
class SchedulerFact:
    """A report of the scheduler or the parent process about one incarnation.

    `ended`: the incarnation is over. `saved`: the newest complete checkpoint in the job's directory, whoever
    wrote it. None if none was seen there. A fact with `saved` and no end tells only of a new checkpoint.
    """

    job: JobText
    incarnation: Name
    native_id: Name
    old: str
    new: str
    ended: bool
    mode: Mode | None = None
    error_type: str = ""
    exit_code: Whole | None = None
    signal: Whole | None = None
    reason: str = ""
    by_person: str = ""  # who cancelled, if the scheduler names them and midwatch did not
    effect_key: str = ""  # the key that the incarnation carries, if a command started it
    cluster: str = ""
    saved: CheckpointChoice | None = None

    @property
    def waits(self) -> bool:
        """Whether the job has no processes yet, for example because its nodes boot."""
        return self.new in _WAITING


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a command. `state`: accepted, refused, expired, done or failed.

    A start that waits in a queue chooses its checkpoint when it begins. Then `checkpoint` is "", and
    `checkpoint_step` tells what lay there at its release.
    """

    job: JobText
    command: str
    attempt: Count
    action: Action
    state: Literal["accepted", "refused", "expired", "done", "failed"]
    reason: str
    old_native_id: str = ""
    new_native_id: str = ""
    new_incarnation: Name = ""
    checkpoint_step: Count | None = None  # the number of the newest complete checkpoint
    incident: str = ""
    checkpoint: str = ""  # its path, if the executor told the new start to load it
    checkpoint_written_ms: Millis = 0  # by its file system's clock; 0 if unknown
    checkpoint_unit: Unit = "step"  # of `checkpoint_step`


@dataclass(frozen=True, slots=True)
class PersonAct:
    """What a person does to a job: arm, disarm, approve, deny, resume or mute."""

    job: JobText
    act: str
    who: str
    at: float
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Activation:
    """From this offset on, the bundle with this hash judges the partition."""

    bundle: str
    current_offset: Whole


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passed. The partition's owner writes a tick when a deadline is due and nothing else arrives."""

    due_ms: Millis
