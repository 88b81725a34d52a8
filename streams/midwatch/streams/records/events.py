"""What detect folds: hits, and the words of the scheduler, the executor and people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from midwatch.streams.records.bounds import Count, Duration, JobText, Millis, Name, Nodes, PolicyText, Whole
from midwatch.streams.records.logs import Origin
from midwatch.streams.records.words import Action, Mode, Phase, Role

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
    """One line of evidence: where it stands and what it says (at most 2 KiB of it)."""

    text: str
    path: str
    number: Count
    offset: Count
    time: float  # corrected wall clock: printed in the line if plausible, else when it was read
    node: str = ""
    rank: Count | None = None
    claimed_rank: Count | None = None  # what the text says of itself: evidence, not identity
    raw: bytes | None = None  # the bytes, where `text` had to replace some

    @property
    def file(self) -> tuple[str, str]:
        """Where its number counts: nodes may each have a file of the same path."""
        return (self.node, self.path)


@dataclass(frozen=True, slots=True)
class Rate:
    """So many hits of a rule count against the job within so many seconds of its lines' time."""

    hits: Count
    seconds: Duration


@dataclass(frozen=True, slots=True)
class Hit:
    """A rule matched a line. It carries role, type and transience, so nobody has to look the rule up."""

    rule: str
    role: Role
    error_type: str
    subsystem: str
    severity: str
    transient: bool | None
    line: Line
    end: Count  # offset in the file behind the line
    generation: str
    mode: Mode | None = None
    phase: Phase | None = None
    remedy: str = ""
    captures: Mapping[str, str] = field(default_factory=dict)
    fallback: bool = False  # the rule knows no more than that something failed
    excuses: Count | None = None  # number of a line of this file: an exception that was only a probe
    limit: Rate | None = None  # of the rule


@dataclass(frozen=True, slots=True)
class HitCount:
    """Further hits of one rule on one rank in one chunk, beyond those sent whole: evidence only."""

    rule: str
    rank: Count | None
    count: Count
    first_number: Count
    last_number: Count
    path: str


@dataclass(frozen=True, slots=True)
class Stop:
    """A line that ends the watch of a rule: no hit of it behind this line counts in this attempt."""

    rule: str
    path: str
    generation: str
    number: Count
    end: Count
    time: float  # as of a `Line`


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress lines of one file in one chunk, as columns of equal length; captures stay strings."""

    path: str
    generation: str
    rule: str
    phase: Phase
    steps: tuple[Whole, ...]
    ends: tuple[Count, ...]  # offset behind each line: what lies below the mark already judged is dropped
    numbers: tuple[Count, ...]
    times: tuple[float, ...]
    losses: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()  # of a line without a step: what rises while its loop goes round
    grad_norms: tuple[str, ...] = ()
    total: Whole | None = None  # the last step that the job means to reach, if the line says so
    rank: Count | None = None
    last: Line | None = None  # the last of them as it stands, cut short: what a hang is shown by

    def __post_init__(self) -> None:
        """Raises ValueError: the columns do not stand beside each other."""
        lengths = {len(self.steps), len(self.ends), len(self.numbers), len(self.times)}
        optional = {len(self.losses), len(self.counts), len(self.grad_norms)} - {0}
        if len(lengths | optional) > 1:
            raise ValueError("the columns of a progress record are not of equal length")


@dataclass(frozen=True, slots=True)
class Hits:
    """All that match found in one chunk, in the order of the lines; at most one record a chunk."""

    origin: Origin
    bundle: str
    hits: tuple[Hit, ...] = ()
    counts: tuple[HitCount, ...] = ()
    progress: tuple[Progress, ...] = ()
    ends: Mapping[str, Count] = field(default_factory=dict)  # generation -> offset behind its last line
    logged_ms: Millis = 0  # append time of the chunk on the topic `logs`
    stops: tuple[Stop, ...] = ()


@dataclass(frozen=True, slots=True)
class SpecEvent:
    """A job's spec was written: what detect and decide need of it. The spec itself stays in `specs`.

    A job may bring a policy of its own: then `policy` is its name and `policy_text` the policy, as a file of
    ours writes it. `any_line`: whatever the job prints ends its silence, not only progress.
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
    """What the scheduler, or the parent process, says of one incarnation.

    `ended` is its word that the incarnation is over. `started_by`: "command:<id>", "person", "requeue" or "".
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
    by_person: str = ""  # who cancelled, if the scheduler says so and it was no effect of ours
    effect_key: str = ""  # the key that the incarnation carries, if one of our commands started it
    cluster: str = ""

    @property
    def waits(self) -> bool:
        """Whether the job has no processes yet, be it that its nodes boot."""
        return self.new in _WAITING


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a command. `state`: accepted, refused, expired, done or failed."""

    job: JobText
    command: str
    attempt: Count
    action: Action
    state: Literal["accepted", "refused", "expired", "done", "failed"]
    reason: str
    old_native_id: str = ""
    new_native_id: str = ""
    new_incarnation: Name = ""
    checkpoint_step: Count | None = None
    incident: str = ""


@dataclass(frozen=True, slots=True)
class PersonAct:
    """A person's hand on the wheel: arm, disarm, approve, deny, resume, mute."""

    job: JobText
    act: str
    who: str
    at: float
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Activation:
    """From this offset on the partition is judged by the bundle of that hash."""

    bundle: str
    current_offset: Whole


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passed; written by the partition's owner when a deadline is due and nothing else arrives."""

    due_ms: Millis
