"""The protocol of every scheduler's driver, and the values that it returns.

Four things hold for each driver:
- A failed look raises `ClusterUnreachable`: it never reads as "no job".
- An act returns a hint. Only the next look shows its effect.
- The driver finds a job by the effect key that the job carries, never by the job's name.
- An act names the start that it is for. Where the scheduler shows another start under the same id, the
  driver does nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from midwatch.streams.errors import ServiceUnreachable
from midwatch.streams.records import Mode, SchedulerFact

Kind = Literal["absent", "queued", "held", "running", "ending", "ended", "unknown"]

SOMEBODY = "somebody"  # who cancelled, where the scheduler does not name the person


class ClusterUnreachable(ServiceUnreachable):
    """The scheduler gave no usable answer, so the state of its jobs is unknown."""


@dataclass(frozen=True, slots=True)
class StartState:
    """The state of one start of a job.

    `ending`: the job's processes may still live. `absent`: the scheduler answered and does not know the
    job. After a crash of the scheduler that does not prove an end. `unknown`: the scheduler did not answer.
    `exit_code` and `signal` of an ended job are the scheduler's.
    """

    kind: Kind
    word: str = ""  # the scheduler's own word for the state
    mode: Mode | None = None
    error_type: str = ""
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""
    by_person: str = ""  # who cancelled; may be midwatch itself

    @property
    def over(self) -> bool:
        return self.kind == "ended"

    def fact(  # whose start it is, beside what the scheduler says of it
        self, job: str, incarnation: str, native_id: str, cluster: str, *, before: str, effect_key: str = ""
    ) -> SchedulerFact:
        """The state as the fact that goes to detect. `before`: the scheduler's word of the state before."""
        return SchedulerFact(
            job=job,
            incarnation=incarnation,
            native_id=native_id,
            old=before,
            new=self.word,
            ended=self.over,
            mode=self.mode,
            error_type=self.error_type,
            exit_code=self.exit_code,
            signal=self.signal,
            reason=self.reason,
            by_person=self.by_person,
            effect_key=effect_key,
            cluster=cluster,
        )


@dataclass(frozen=True, slots=True)
class SchedulerJob:
    """One job, as the scheduler shows it now."""

    native_id: str
    incarnation: str
    state: StartState
    effect_key: str = ""  # "" if midwatch did not start the job
    user: str = ""
    started: str = ""  # when this start began, as the scheduler writes it; a change means another start


@dataclass(frozen=True, slots=True)
class SchedulerEpoch:
    """One run of the scheduler. After its restart jobs may be missing or started again."""

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
    """One start: an argv list, never a shell line. The job gets only `environment` from us.

    `by_file`: the environment may hold secrets and steering variables. A driver hands it to the scheduler
    by the scheduler's own means, and to none of its tools.
    """

    argv: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    user: str = ""
    exclude_nodes: str = ""  # as the scheduler writes a list of nodes
    export: str = ""  # SLURM's `--export`, if only some of the variables may reach the job
    by_file: bool = False


@dataclass(frozen=True, slots=True)
class Hint:
    """The apparent result of an act. `refused`: certainly not done, and a second try will not help.

    `unsent`: certainly not done, because the scheduler was not reached. A later try may help.
    """

    result: Literal["done", "refused", "unclear", "unsent"]
    text: str = ""


@dataclass(frozen=True, slots=True)
class DependentJob:
    """A job that waits for the good end of another. `dependency`: as the scheduler writes it."""

    native_id: str
    user: str
    dependency: str


@runtime_checkable
class KnowsDependents(Protocol):
    """What a driver may have besides `Cluster`: jobs that wait for others. A foreign one need not."""

    def dependents(self, native: str) -> tuple[DependentJob, ...]:
        """The jobs that wait for the good end of this job. Raises ClusterUnreachable."""
        ...

    def repointing(self, dependent: DependentJob, old: str, new: str) -> tuple[str, ...]:
        """The command line that lets it wait for `new` in the place of `old`; empty if none can."""
        ...

    def repoint(self, argv: tuple[str, ...]) -> Hint:
        """Runs such a command line. Harmless when repeated."""
        ...


@runtime_checkable
class Cluster(Protocol):
    """One scheduler. `holds`: a submitted job can wait until `release` lets it run."""

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
        """The state of one start, from accounting too. Returns `unknown` instead of an error."""
        ...

    def epoch(self) -> SchedulerEpoch:
        """Raises ClusterUnreachable."""
        ...

    def submit_held(self, spec: StartSpec, effect_key: str, after: str = "") -> Hint:
        """Submits a job that carries the key. It runs once it is released and `after` (native id) has ended.

        Where the cluster does not hold, the job runs at once. There a second call with the same key starts
        nothing.
        """
        ...

    def retire(self, effect_key: str, before: str) -> None:
        """Frees this key of an ended job that is older than the start `before`.

        Such a job belongs to an earlier use of the job's name, and is no effect of the present one.
        Harmless when repeated. A driver whose scheduler forgets its jobs by itself may do nothing.
        """
        ...

    def release(self, incarnation: str, effect_key: str) -> Hint:
        """Lets a held job of ours run. Harmless when repeated."""
        ...

    def cancel(self, incarnation: str, effect_key: str = "", *, force: bool = False) -> Hint:
        """Ends one start. Use `force` when a cancel without it did not help in time.

        The hint proves no end: look again. With an `effect_key`, only a job that carries it is ended.
        """
        ...
