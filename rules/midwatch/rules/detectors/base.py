"""What a detector is: state and one sighting of a job in, new state and signs out. Pure values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from midwatch.streams.records import Phase

State = TypeVar("State")


class StepSeen(NamedTuple):
    """A progress line that names its step or prints a loss. What it printed stays text.

    `loss` may be "nan", or "" for none. `own`: whether the line names the step. Else it is the latest one of
    the job, or -1 if none is known. Then `at` is how far the line's loop is: an epoch, or an epoch and a
    batch. `rule`: the rule that read the line. `at_ms` is the broker's time of the record that brought the
    line, in milliseconds since 1970.
    """

    at_ms: int
    node: str
    path: str
    number: int  # of the line in its file
    step: int
    phase: Phase
    loss: str = ""
    grad_norm: str = ""
    rule: str = ""
    own: bool = True
    at: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class HeartbeatSeen:
    """A new heartbeat of one node. `samples` are the numbers that its shipper took, by name."""

    at_ms: int
    node: str
    step: int | None  # the latest of the job
    phase: Phase
    interval: float  # seconds that the shipper means to let pass between two heartbeats
    alive: bool | None  # the job's processes on this node; None where it cannot be known
    samples: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SilenceSeen:
    """How long the whole job has been silent, counted and never subtracted. Both in seconds."""

    at_ms: int
    silence: float
    limit: float  # of this phase
    phase: Phase


Sighting = StepSeen | HeartbeatSeen | SilenceSeen


@dataclass(frozen=True, slots=True)
class Opened:
    """A finding is open from now on. The finding's kind is the detector's name, with `:about` behind it.

    Opening what is open changes nothing.
    """

    detail: str
    quantities: Mapping[str, str] = field(default_factory=dict)
    about: str = ""


@dataclass(frozen=True, slots=True)
class Cleared:
    """The finding is over. Clearing what is not open changes nothing."""

    detail: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class Stalled:
    """The attempt hangs: only a detector that ships with midwatch may say so, since a restart follows."""

    seconds: float


Sign = Opened | Cleared | Stalled


@runtime_checkable
class Detector(Protocol[State]):
    """Watches one attempt of one job. The same sightings must give the same signs, on any machine.

    The state is a frozen dataclass that JSON can hold. Each attempt begins with `start()`.
    A detector must not read a clock, a file or a random number, nor keep anything beside its state.
    """

    @property
    def name(self) -> str:
        """What settings and findings call it."""
        ...

    @property
    def version(self) -> str:
        """Another one wherever its answers or its state change."""
        ...

    def start(self) -> State:
        """The state at the start of an attempt."""
        ...

    def observe(self, state: State, seen: Sighting) -> tuple[State, Sequence[Sign]]:
        """What follows from one sighting. Sightings come in the order in which they count."""
        ...


Detectors = Mapping[str, Detector[Any]]
"""Detectors by their names."""
