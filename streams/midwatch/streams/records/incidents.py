"""What detect writes and decide reads: verdicts, incidents and findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from msgspec import UNSET, UnsetType

from midwatch.streams.records.bounds import Count, JobText, Millis, Name, Whole
from midwatch.streams.records.events import (
    Activation,
    Hit,
    HitCount,
    Line,
    Outcome,
    PersonAct,
    SchedulerFact,
    SpecEvent,
    Tick,
)
from midwatch.streams.records.words import Mode, Phase

_TIME_LIMIT = ("slurm_failure", "timeout", "unknown")  # error types that schedulers give to a time limit


@dataclass(frozen=True, slots=True)
class Alike:
    """Labelled ends that have `like` in common with this one; `worth` of them were judged worth a restart."""

    like: str
    worth: Whole
    of: Whole


@dataclass(frozen=True, slots=True)
class Chance:
    """How likely it is that the same start passes, and the counts behind it.

    `like` says what the `of` labelled ends have in common with this one; `worth` of them were judged worth a
    restart. `own_passed` of the user's `own` restarts after such an end passed, by the counts that
    `outcomes` names by its hash. `share` is from 0 to 1, smoothed, and made of both.

    `classes` are the labelled ends that carry the share, the most alike first. `grounds` counts the ends that
    tell of this one: a chance without grounds is a guess. An older midwatch wrote neither.
    """

    share: float
    worth: Whole = 0
    of: Whole = 0
    like: str = ""
    stepped: bool = False  # the attempt made a step
    own_passed: Whole = 0
    own: Whole = 0
    outcomes: Name = ""
    classes: tuple[Alike, ...] = ()
    grounds: Whole | UnsetType = UNSET

    @property
    def sentence(self) -> str:
        """The counts in words."""
        own = f"; of your own restarts {self.own_passed} of {self.own} passed" if self.own else ""
        if not self.of and not self.classes:
            return f"no labelled end is like this{own}"
        first, *wider = self.classes or (Alike(self.like, self.worth, self.of),)
        like = f" ({first.like})" if first.like else ""
        ends = f"{first.worth} of {first.of} labelled ends like this{like}"
        *more, last = [ends, *(f"{each.worth} of {each.of} ({each.like})" for each in wider)]
        listed = f"{', '.join(more)} and {last}" if more else last
        return f"{listed} were judged worth a restart{own}"


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
    doubt: str = ""  # why it is not known whether it is transient, and what would tell
    chance: Chance | UnsetType = UNSET  # only of failures; an older midwatch did not write it

    @property
    def at_time_limit(self) -> bool:
        """Whether a scheduler's time limit ended the attempt, and no other cause was found."""
        return self.mode == "timeout" and self.error_type in _TIME_LIMIT


@dataclass(frozen=True, slots=True)
class Rival:
    """A line that could have been the root, and why it is not. `more`: lines of its rule with that reason."""

    rule: str
    path: str
    number: Count
    reason: str
    node: str = ""
    rank: Count | None = None
    more: Count = 0

    @property
    def phrase(self) -> str:
        """The line and the reason in one phrase for a person."""
        rank = "" if self.rank is None else f" rank {self.rank}"
        node = f" {self.node}" if self.node else ""
        more = f" ({self.more} more like it)" if self.more else ""
        return f"{self.path}:{self.number}{node}{rank} {self.rule}: {self.reason}{more}"


@dataclass(frozen=True, slots=True)
class Incident:
    """The end or the hang of one attempt, as detect sees it at `revision`.

    `heard_ms` and `rivals` are for people and take no part in a comparison. An older midwatch wrote neither.
    """

    id: str
    job: JobText
    attempt: Count
    incarnation: Name
    state: Literal["suspected", "withdrawn", "ended", "settled"]
    revision: Count
    verdict: Verdict
    evidence: tuple[Hit, ...] = ()
    counts: tuple[HitCount, ...] = ()
    opened_ms: Millis = 0
    ended_ms: Millis | None = None
    settled_ms: Millis | None = None
    scheduler: SchedulerFact | None = None
    spec: SpecEvent | None = None
    silence: float | None = None  # seconds counted, for a stall
    superseded_by: Name = ""  # the incarnation that somebody else started before this one settled
    words: tuple[str, ...] = ()  # who reported the attempt's end: "scheduler", "process"
    line_ms: Millis | None = None  # append time of the record that held the root line
    cut: bool = False  # the job's history begins neither at its start nor at a snapshot
    heard_ms: Millis | None = field(default=None, compare=False)  # append time of its last heartbeat
    rivals: tuple[Rival, ...] | UnsetType = field(default=UNSET, compare=False)  # UNSET: there is none
    first_step_s: float | UnsetType = UNSET  # seconds from the attempt's start to its first step

    @property
    def other_candidates(self) -> tuple[Rival, ...]:
        """The lines that could have been the root, each with the reason why it is not; best first."""
        return self.rivals if isinstance(self.rivals, tuple) else ()


RESUMED = "resumed"
"""The kind of a finding that only says where an attempt went on. It is never open."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A fact that is no incident: a spike, a silent node, a blind spot. It opens and clears.

    `step`, and `heard_ms` as in an incident, are what detect knew when the finding opened.
    """

    job: JobText
    attempt: Count
    kind: str
    open: bool
    at_ms: Millis
    detail: str
    lines: tuple[Line, ...] = ()
    quantities: Mapping[str, str] = field(default_factory=dict)
    step: Whole | None = field(default=None, compare=False)
    heard_ms: Millis | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Forwarded:
    """A record that a stage passes on to the next one.

    Detect passes outcomes, a person's acts and specs on to decide, in the order of `events`. Decide passes
    settled incidents, findings, outcomes and specs on to `decisions`, for the messages to people.
    """

    record: Outcome | PersonAct | SpecEvent | Incident | Finding


IncidentRecord = Incident | Finding | Forwarded | Activation | Tick
