"""What flows between the parts: frozen values, one class a kind, nothing but data.

Units: times named `*_ms` are milliseconds since 1970 by the broker's append time unless a field says
otherwise; `wall` and `read_at` are seconds since 1970 by a node's own clock (never compared across
nodes without taking off its offset); `monotonic` is seconds of one shipper process. Byte offsets and
line numbers are those of the user's file as it stands on disk; line numbers begin at 1.

`midwatch.streams.codec` turns them into bytes and back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Role = Literal["cause", "consequence", "context", "progress", "success"]
Mode = Literal["crash", "stall", "timeout", "ended", "success"]
Action = Literal["restart", "cancel", "stop", "hold", "none"]
Phase = Literal["startup", "compile", "training", "evaluation", "checkpoint"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Who speaks: one shipper of one job on one node. From configuration and environment, never from text."""

    job: str  # cluster:user/run
    node: str
    nodes: int  # how many nodes this attempt runs on
    incarnation: str  # see midwatch.streams.identity
    boot_id: str
    shipper: str  # one start of the shipper; sequence numbers of beats count within it


@dataclass(frozen=True, slots=True)
class Generation:
    """Which file a path names at present: a rotated, truncated or replaced file is another generation."""

    device: int
    inode: int
    fingerprint: str  # of the first bytes, so that a reused inode is seen
    truncations: int = 0

    def key(self) -> str:
        return f"{self.device}:{self.inode}:{self.fingerprint}:{self.truncations}"


@dataclass(frozen=True, slots=True)
class Anchor:
    """From line `index` of a section on, lines stand at `offset` and `number` of the original file."""

    index: int
    offset: int
    number: int


@dataclass(frozen=True, slots=True)
class Section:
    """Whole lines of one file within a chunk's text.

    `anchors` holds the first line and every line where normalising changed length or count; between two
    anchors each line is as long as it was (plus its newline). The first `context` lines are repeated from
    an earlier chunk to complete a block: a hit that ends within them is not this chunk's.
    """

    path: str
    generation: Generation
    size: int  # bytes of the chunk's text that belong to this section
    lines: int
    anchors: tuple[Anchor, ...]
    end: int  # offset in the original file behind the last line
    read_before: float  # wall clock of the previous read of this file
    read_at: float
    rank: int | None = None  # only if the configuration knows it
    context: int = 0


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole normalised lines of one node; `text` is the sections' lines, one behind the other."""

    origin: Origin
    sections: tuple[Section, ...]
    text: bytes


@dataclass(frozen=True, slots=True)
class Beat:
    """A shipper's sign of life. It travels behind the lines that it vouches for.

    `at_end`: every file was read to the size that it had when the poll began. `alive`: the process tree of
    the job on this node, None if it cannot be known. `final`: the job has ended and its files are drained.
    """

    origin: Origin
    sequence: int
    wall: float
    monotonic: float
    interval: float  # seconds that this shipper means to let pass between two beats
    at_end: bool
    backlog: int  # bytes read or waiting but not yet acknowledged by the broker
    alive: bool | None = None
    final: bool = False
    logged_ms: int = 0  # append time on the topic `logs`; match writes it in, so that its own lag shows
    files: int = 0
    samples: Mapping[str, float] = field(default_factory=dict)


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


@dataclass(frozen=True, slots=True)
class Verdict:
    """What happened and why. Anyone can derive it again from the topics."""

    state: Literal["failed", "healthy", "unknown"]
    mode: Mode | None = None
    error_type: str = "unknown"
    family: str = "none"
    subsystem: str = ""
    transient: bool | None = None
    root_line: str = ""
    root_file: str = ""
    root_line_number: int | None = None
    node: str = ""
    rank: int | None = None
    step: int | None = None
    phase: Phase | None = None
    remedy: str = ""
    rule: str = ""
    bundle: str = ""
    quantities: Mapping[str, str] = field(default_factory=dict)
    complete: bool = True
    given_up: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Incident:
    """The end or the hang of one attempt, as detect sees it at `revision`."""

    id: str
    job: str
    attempt: int
    incarnation: str
    state: Literal["suspected", "withdrawn", "ended", "settled"]
    revision: int
    verdict: Verdict
    evidence: tuple[Hit, ...] = ()
    counts: tuple[HitCount, ...] = ()
    opened_ms: int = 0
    ended_ms: int | None = None
    settled_ms: int | None = None
    scheduler: SchedulerFact | None = None
    spec: SpecEvent | None = None
    silence: float | None = None  # seconds counted, of a stall
    superseded_by: str = ""  # the incarnation that somebody else had already started when this one settled
    words: tuple[str, ...] = ()  # whose word it is that the attempt ended: "scheduler", "process"
    line_ms: int | None = None  # append time of the record that held the root line


@dataclass(frozen=True, slots=True)
class Finding:
    """Something worth knowing that is no incident: a spike, a silent node, a blind spot. Opens and clears."""

    job: str
    attempt: int
    kind: str
    open: bool
    at_ms: int
    detail: str
    lines: tuple[Line, ...] = ()
    quantities: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Forwarded:
    """An outcome, a person's act or a spec that decide needs, passed on by detect in the order of truth."""

    record: Outcome | PersonAct | SpecEvent


IncidentRecord = Incident | Finding | Forwarded | Activation | Tick


@dataclass(frozen=True, slots=True)
class Decision:
    """A value with its reason, kept even when it is to do nothing."""

    job: str
    attempt: int
    incident: str
    revision: int
    action: Action
    policy: str
    reason: str
    at_ms: int
    armed: bool
    restart_number: int = 0  # attempt n of `restart_limit`, if the action is a restart
    restart_limit: int | None = None
    near_misses: tuple[str, ...] = ()
    command: str = ""  # id of the command written, "" if none


@dataclass(frozen=True, slots=True)
class Command:
    """One typed order to the executor. `signature` is over the canonical bytes of all other fields."""

    id: str
    job: str
    attempt: int
    seq: int
    action: Literal["restart", "cancel"]
    incarnation: str
    incident: str
    revision: int
    reason: str
    not_before_ms: int
    expires_ms: int
    issuer: str
    spec: str
    bundle: str
    restart_number: int = 1
    restart_limit: int | None = None
    parameters: Mapping[str, int | str] = field(default_factory=dict)
    signature: str = ""


@dataclass(frozen=True, slots=True)
class Spec:
    """How to start this job again. Signed; the command carries its hash; only the executor reads it."""

    job: str
    cluster: str
    argv: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]
    user: str
    log_paths: tuple[str, ...]
    checkpoint_directory: str
    policy: str
    armed: bool
    nodes: int = 1
    limits: Mapping[str, float] = field(default_factory=dict)
    max_restarts: int | None = None
    rules: str = ""
    signature: str = ""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """What could not be read, and why."""

    topic: str
    partition: int
    offset: int
    reason: str
    value: bytes
    key: bytes | None = None
