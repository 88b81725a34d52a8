"""The rule: what is looked for in a line, and what it means when it is found.

Everything here is a value. A rule says nothing about what to do: that is the policy's business.
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
    """What a hit of the rule is evidence of.

    Only a `CAUSE` may become the root of a verdict while one stands; a `CONSEQUENCE` (a peer died, a
    watchdog fired, a launcher's summary) stands in where no cause was seen. `CONTEXT` makes no failure; above
    severity `info` it is named as the cause of one that is known by its bare end alone.
    """

    CAUSE = "cause"
    CONSEQUENCE = "consequence"
    CONTEXT = "context"
    PROGRESS = "progress"
    SUCCESS = "success"


class Severity(StrEnum):
    """How loud a hit is shown. It decides one thing: context that is only an `INFO` never explains an end."""

    CRITICAL = "critical"
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Phase(StrEnum):
    """What the job is doing; each phase has its own silence limit."""

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
    """What a rule is asked of that is not asked of single lines; see `midwatch.streams.lines.blocks`."""

    TRACEBACK = "traceback"


class NoteKind(StrEnum):
    """What a note of the reading is about."""

    ARMING = "arming"  # whether anything acts at all
    MOOT = "moot"  # accepted, and without an effect here
    NOT_EXECUTED = "not executed"  # would run a command or touch a file: read, listed, never done
    CHANGED = "changed"  # means something else than it looks like
    WARNING = "warning"  # taken as it is, and probably not what its writer wants


@dataclass(frozen=True, slots=True)
class Note:
    """Something worth knowing about a file that could be read: where, what, and what may be done."""

    kind: NoteKind
    location: SourceLocation
    what: str
    remedy: str = ""

    def __str__(self) -> str:
        advice = f"\n  {self.remedy}" if self.remedy else ""
        return f"{self.location}: {self.kind}: {self.what}{advice}"


@dataclass(frozen=True, slots=True)
class RateLimit:
    """Of one rule and attempt at most `hits` in `seconds` count against the job; the rest are only counted.

    Told by the times of the lines, not by a clock. A cause that is held back so is no cause: keep it for
    what is printed again and again without harm.
    """

    hits: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One thing to look for.

    `pattern` is RE2 syntax, searched in one line at a time without its line end; with a `block` in a whole
    one, whose lines stand without their speaker and are joined by line feeds: `(?s)` lets `.` cross them.
    A pattern of ASCII characters only is compiled for bytes (LATIN1), so `.` also matches a byte that is no
    valid UTF-8. `captures` maps a named group of the pattern to what it means (`rank`, `step`, `loss`,
    `size`, ..); a group that is not listed means itself, and two groups may mean the same (alternatives).
    `transient`: True, the same start may succeed; False, it cannot; None, it depends.
    `stop_pattern` ends the rule's watch for the rest of the attempt once a line of the job matches it:
    match tells of that line, the fold takes no hit behind it. A `fallback` (the last line of any traceback,
    a bare signal) counts only on a line in which no other rule was found. A line that calls itself a warning
    or less is no failure, except to a rule with `any_level`. With `at_start` the match counts only where it
    begins the line, but for what a launcher prints in front. `shows`: see `Shows`.
    `source` says where the knowledge comes from.
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
    location: SourceLocation = _IN_CODE


@dataclass(frozen=True, slots=True, kw_only=True)
class SilenceLimit:
    """How long a job may print no progress in a phase before it counts as silent."""

    phase: Phase
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFile:
    """One file of rules as it was read: what it includes, and what it adds."""

    name: str
    description: str = ""
    include: tuple[tuple[str, SourceLocation], ...] = ()
    exclude: tuple[tuple[str, SourceLocation], ...] = ()
    silence: tuple[SilenceLimit, ...] = ()
    any_line: bool = False
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """What one watch looks for: the rules of a file and of all that it includes.

    `content_hash` is the SHA-256 (hex) over names and bytes of the files that were read, so two bundles
    with one hash are the same. `silence` holds one limit per phase, the including file's above the
    included ones'. With `any_line` every new line of the job, whatever it says, ends its silence; without it
    only progress does. `notes` is what the reading wants a person to know.
    """

    name: str
    content_hash: str
    rules: tuple[Rule, ...]
    silence: Mapping[Phase, float] = field(default_factory=dict, hash=False)
    description: str = ""
    files: tuple[str, ...] = ()
    any_line: bool = False
    notes: tuple[Note, ...] = ()
