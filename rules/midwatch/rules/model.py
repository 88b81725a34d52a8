"""The rule: what to look for in a line, and what a hit means.

Everything here is a value. A rule does not say what to do; a policy does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from midwatch.streams.strict_yaml import SourceLocation

__all__ = [
    "BlockKind",
    "Bundle",
    "Mode",
    "Note",
    "NoteKind",
    "Phase",
    "RateLimit",
    "Role",
    "Rule",
    "RuleFile",
    "Severity",
    "Shows",
    "SilenceLimit",
    "SourceLocation",
]

_IN_CODE = SourceLocation("<code>")


class Role(StrEnum):
    """The meaning of a rule's hit as evidence.

    While there is a `CAUSE`, only a cause may become the root of a verdict. Without one, a `CONSEQUENCE` may:
    a peer died, a watchdog fired, a launcher's summary. `CONTEXT` makes no failure. Above severity `info` it
    is named as the cause of a failure of which nothing but its end is known.
    """

    CAUSE = "cause"
    CONSEQUENCE = "consequence"
    CONTEXT = "context"
    PROGRESS = "progress"
    SUCCESS = "success"


class Severity(StrEnum):
    """How prominently a hit is shown. It decides one thing: `INFO` context never explains an end."""

    CRITICAL = "critical"
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Phase(StrEnum):
    """The job's activity; each phase has a silence limit."""

    STARTUP = "startup"
    COMPILE = "compile"
    TRAINING = "training"
    EVALUATION = "evaluation"
    CHECKPOINT = "checkpoint"


class Shows(StrEnum):
    """What a line of a progress rule proves.

    `STEP`: the job goes on. That it trains, only the line's number shows: a step, a loss, a batch of an
    epoch, a count that climbs. `TRAINING`: the line itself shows it, as a complete checkpoint does.
    `CLIMB`: its count shows it once it has climbed; the silence goes on.
    """

    STEP = "step"
    TRAINING = "training"
    CLIMB = "climb"


class Mode(StrEnum):
    """How an attempt ends if this rule is its root."""

    CRASH = "crash"
    STALL = "stall"
    TIMEOUT = "timeout"
    SUCCESS = "success"


class BlockKind(StrEnum):
    """The kind of block that a rule is searched in instead of a line; see `midwatch.streams.lines.blocks`."""

    TRACEBACK = "traceback"


class NoteKind(StrEnum):
    """The subject of a note about a file."""

    ARMING = "arming"  # whether midwatch may act
    MOOT = "moot"  # accepted, without an effect here
    NOT_EXECUTED = "not executed"  # would run a command or touch a file: listed, never executed
    CHANGED = "changed"  # means something else here than it seems to
    WARNING = "warning"  # accepted as it is, but probably a mistake


@dataclass(frozen=True, slots=True)
class Note:
    """A remark about a file that was read: its place, its text and its remedy."""

    kind: NoteKind
    location: SourceLocation
    what: str
    remedy: str = ""

    def __str__(self) -> str:
        advice = f"\n  {self.remedy}" if self.remedy else ""
        return f"{self.location}: {self.kind}: {self.what}{advice}"


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most `hits` of the rule within `seconds` count against the job, in one attempt.

    Further hits are only counted. The times of the lines decide, not a clock. The trap: a cause above the
    limit is no cause. Use a limit only for lines that a job prints again and again without harm.
    """

    hits: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One thing to look for.

    `pattern` is RE2 syntax. It is searched in one line at a time, without the line end. With a `block` it is
    searched in a whole block. The lines of a block are joined by line feeds and lack the prefix of their
    speaker; `(?s)` lets `.` cross the line feeds. A pattern of ASCII characters is compiled for bytes
    (LATIN1), so its `.` also matches a byte that is not valid UTF-8.

    `captures` maps a named group of the pattern to its meaning: `rank`, `step`, `loss`, `size` and so on. An
    unlisted group means its name. Two groups may have the same meaning (alternatives). `transient` is True if
    the same start may succeed, False if it cannot, None if it depends.

    `stop_pattern` ends the rule's watch for the rest of the attempt once a line of the job matches it. Match
    reports that line, and the fold ignores later hits of the rule. A `fallback` counts only on a line where
    no other rule matches; examples are the last line of any traceback and a bare signal. A line that calls
    itself a warning or less is no failure, except for a rule with `any_level`. With `at_start` the match must
    begin the line, apart from a launcher's prefix. `shows`: see `Shows`. `source` says where the knowledge
    comes from.

    `export` names captures, by meaning, whose numbers become metrics of the job.
    """

    name: str
    pattern: str
    error_type: str = ""
    subsystem: str = ""
    severity: Severity = Severity.ERROR
    role: Role = Role.CAUSE
    transient: bool | None = None
    captures: Mapping[str, str] = field(default_factory=dict, hash=False)
    remedy: str = ""
    match: tuple[str, ...] = ()
    no_match: tuple[str, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict, hash=False)
    rate_limit: RateLimit | None = None
    stop_pattern: str = ""
    fallback: bool = False
    any_level: bool = False
    at_start: bool = False
    phase: Phase | None = None
    shows: Shows = Shows.STEP
    mode: Mode | None = None
    block: BlockKind | None = None
    source: str = ""
    export: tuple[str, ...] = ()
    location: SourceLocation = _IN_CODE


@dataclass(frozen=True, slots=True, kw_only=True)
class SilenceLimit:
    """Seconds without progress in a phase after which a job counts as silent."""

    phase: Phase
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFile:
    """One rule file as it was read: its includes and its own rules."""

    name: str
    description: str = ""
    include: tuple[tuple[str, SourceLocation], ...] = ()
    exclude: tuple[tuple[str, SourceLocation], ...] = ()
    silence: tuple[SilenceLimit, ...] = ()
    any_line: bool = False
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """The rules of a file and of all files that it includes.

    `content_hash` is the SHA-256 (hex) over the names and bytes of the files, so bundles with one hash are
    the same. `silence` holds one limit per phase; a file's limits override those of the files that it
    includes. With `any_line` every new line of the job ends its silence; without it only progress does.
    `notes` holds remarks for the person who wrote the files.
    """

    name: str
    content_hash: str
    rules: tuple[Rule, ...]
    silence: Mapping[Phase, float] = field(default_factory=dict, hash=False)
    description: str = ""
    files: tuple[str, ...] = ()
    any_line: bool = False
    notes: tuple[Note, ...] = ()
