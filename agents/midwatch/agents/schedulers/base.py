"""What every scheduler can be asked, and the values it answers with.

Four things hold for each driver. A failed look raises `ClusterUnreachable`: it never reads as "no job". The
answer to an act is a hint; only the next look tells what is. A job is found by the effect key that it
carries, never by its name. And an act names the start that it is meant for: where the scheduler shows
another one under the same id, nothing is done.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from midwatch.streams.errors import ServiceUnreachable
from midwatch.streams.records import Mode

Kind = Literal["absent", "queued", "held", "running", "ending", "ended", "unknown"]

SOMEBODY = "somebody"  # who cancelled, where the scheduler does not say more


class ClusterUnreachable(ServiceUnreachable):
    """The scheduler gave no usable answer: nothing at all is known of its jobs."""


@dataclass(frozen=True, slots=True)
class StartState:
    """The state of one start of a job.

    `ending` is not gone: its processes may still live. `absent` means that the scheduler answered and does
    not know the job, which after a crash of the scheduler is no proof of an end. `unknown` means that it
    did not answer. Of an ended job `exit_code` and `signal` are as the scheduler tells them.
    """

    kind: Kind
    word: str = ""  # the scheduler's own
    mode: Mode | None = None
    error_type: str = ""
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""
    by_person: str = ""  # who cancelled; may have been ourselves

    @property
    def over(self) -> bool:
        return self.kind == "ended"


@dataclass(frozen=True, slots=True)
class SchedulerJob:
    """One job as the scheduler shows it now."""

    native_id: str
    incarnation: str
    state: StartState
    effect_key: str = ""  # "" if it is none of our starts
    user: str = ""
    started: str = ""  # when this start began, in the scheduler's own form; a change means another start


@dataclass(frozen=True, slots=True)
class SchedulerEpoch:
    """Which run of the scheduler answers. After a restart of it, jobs may be missing or started again."""

    name: str
    age_s: float


@dataclass(frozen=True, slots=True)
class Sweep:
    """One successful look at all jobs."""

    jobs: tuple[SchedulerJob, ...]

    def carrying(self, effect_key: str) -> tuple[SchedulerJob, ...]:
        return tuple(job for job in self.jobs if job.effect_key == effect_key) if effect_key else ()


@dataclass(frozen=True, slots=True)
class StartSpec:
    """What to start: an argv list, never a shell line. Nothing but `environment` reaches the job from us."""

    argv: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    exclude_nodes: str = ""  # in the scheduler's own form


@dataclass(frozen=True, slots=True)
class Hint:
    """What an act seemed to do. `refused`: surely not done, and asking again will not help."""

    result: Literal["done", "refused", "unclear"]
    text: str = ""


@runtime_checkable
class Cluster(Protocol):
    """One scheduler. `holds`: a job can be submitted without running until it is released."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str:
        """The first word of its incarnations."""
        ...

    @property
    def holds(self) -> bool: ...

    def sweep(self) -> Sweep:
        """All jobs in one call. Raises ClusterUnreachable."""
        ...

    def find(self, effect_key: str) -> tuple[SchedulerJob, ...]:
        """The jobs that carry this key. Raises ClusterUnreachable; never empty on failure."""
        ...

    def state(self, incarnation: str) -> StartState:
        """All that can be learnt of one start, from accounting too; `unknown` instead of an error."""
        ...

    def epoch(self) -> SchedulerEpoch:
        """Raises ClusterUnreachable."""
        ...

    def submit_held(self, spec: StartSpec, effect_key: str, after: str = "") -> Hint:
        """Starts a job that carries the key and runs only when released, and after `after` (native id).

        Where the cluster does not hold, it runs at once, and a second call with the same key starts nothing.
        """
        ...

    def retire(self, effect_key: str, before: str) -> None:
        """Sets an ended job with this key aside if it is older than the start `before`: then it is of an
        earlier life of the job's name, and no effect of the present one. Harmless when repeated. May do
        nothing where the scheduler itself forgets its jobs.
        """
        ...

    def release(self, incarnation: str, effect_key: str) -> Hint:
        """Lets a held job of ours run; harmless when repeated."""
        ...

    def cancel(self, incarnation: str, effect_key: str = "", *, force: bool = False) -> Hint:
        """Ends one start; `force` once the polite way has had its time. Proves nothing: look again.

        With an `effect_key`, only a job that carries it.
        """
        ...
