"""What detect folds: hits, and the words of the scheduler, the executor and people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from midwatch.streams.records.logs import Beat, Origin
from midwatch.streams.records.words import Action, Mode, Phase, Role


@dataclass(frozen=True, slots=True)
class Line:
    """One line of evidence: where it stands and what it says (at most 2 KiB of it)."""

    text: str
    path: str
    number: int
    offset: int
    time: float  # corrected wall clock: printed in the line if plausible, else when it was read
    node: str = ""
    rank: int | None = None
    claimed_rank: int | None = None  # what the text says of itself: evidence, not identity
    raw: bytes | None = None  # the bytes, where `text` had to replace some


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
    end: int  # offset in the file behind the line
    generation: str
    mode: Mode | None = None
    phase: Phase | None = None
    remedy: str = ""
    captures: Mapping[str, str] = field(default_factory=dict)
    fallback: bool = False  # the rule knows no more than that something failed
    excuses: int | None = None  # number of a line of this file: an exception that was only a probe


@dataclass(frozen=True, slots=True)
class HitCount:
    """Further hits of one rule on one rank in one chunk, beyond those sent whole: evidence only."""

    rule: str
    rank: int | None
    count: int
    first_number: int
    last_number: int
    path: str


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress lines of one file in one chunk, as columns of equal length; captures stay strings."""

    path: str
    generation: str
    rule: str
    phase: Phase
    steps: tuple[int, ...]
    ends: tuple[int, ...]  # offset behind each line: what lies below the mark already judged is dropped
    numbers: tuple[int, ...]
    times: tuple[float, ...]
    losses: tuple[str, ...] = ()
    grad_norms: tuple[str, ...] = ()
    total: int | None = None  # the last step that the job means to reach, if the line says so
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class Hits:
    """All that match found in one chunk, in the order of the lines; at most one record a chunk."""

    origin: Origin
    bundle: str
    hits: tuple[Hit, ...] = ()
    counts: tuple[HitCount, ...] = ()
    progress: tuple[Progress, ...] = ()
    ends: Mapping[str, int] = field(default_factory=dict)  # generation -> offset behind the chunk's last line
    logged_ms: int = 0  # append time of the chunk on the topic `logs`


@dataclass(frozen=True, slots=True)
class SpecEvent:
    """A job's spec was written: what detect and decide need of it. The spec itself stays in `specs`."""

    job: str
    spec: str  # hash
    policy: str
    armed: bool
    nodes: int
    checkpoint_directory: str
    limits: Mapping[str, float] = field(default_factory=dict)  # seconds of silence allowed, by phase
    max_restarts: int | None = None
    incarnation: str = ""  # of the start that `run` or `adopt` made; "" if not yet known


@dataclass(frozen=True, slots=True)
class SchedulerFact:
    """What the scheduler, or the parent process, says of one incarnation.

    `ended` is its word that the incarnation is over. `started_by`: "command:<id>", "person", "requeue" or "".
    """

    job: str
    incarnation: str
    native_id: str
    old: str
    new: str
    ended: bool
    mode: Mode | None = None
    error_type: str = ""
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""
    by_person: str = ""  # who cancelled, if the scheduler says so and it was no effect of ours
    effect_key: str = ""  # the key that the incarnation carries, if one of our commands started it
    cluster: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a command. `state`: accepted, refused, expired, done or failed."""

    job: str
    command: str
    attempt: int
    action: Action
    state: Literal["accepted", "refused", "expired", "done", "failed"]
    reason: str
    old_native_id: str = ""
    new_native_id: str = ""
    new_incarnation: str = ""
    checkpoint_step: int | None = None
    incident: str = ""


@dataclass(frozen=True, slots=True)
class PersonAct:
    """A person's hand on the wheel: arm, disarm, approve, deny, resume, mute."""

    job: str
    act: str
    who: str
    at: float
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Carry:
    """What a fold that begins here must know of a live job (DESIGN 4)."""

    job: str
    attempt: int
    incarnations: Mapping[str, int]
    spec: SpecEvent | None
    checkpoint_step: int | None


@dataclass(frozen=True, slots=True)
class Activation:
    """From this offset on the partition is judged by the bundle of that hash."""

    bundle: str
    current_offset: int


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passed; written by the partition's owner when a deadline is due and nothing else arrives."""

    due_ms: int


Event = Hits | Beat | SpecEvent | SchedulerFact | Outcome | PersonAct | Carry | Activation | Tick
