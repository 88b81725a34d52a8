"""The spec of a job that a person starts, and what must hold before any start. Shell: keeps scripts."""

from __future__ import annotations

import getpass
import os
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from midwatch.agents.launch.submission import kept_submission
from midwatch.agents.schedulers.checkpoint_store import is_url, place
from midwatch.agents.signing import spec_hash
from midwatch.streams.errors import ServiceUnreachable, UsageError
from midwatch.streams.records import Spec, SpecEvent
from midwatch.streams.records.identity import job_name
from midwatch.streams.settings.schema import Settings

_START_BYTES = 64 * 1024
"""What the files of a start take at most: its record, its script, the first lines of its output."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One request of a person. `limits` are seconds by phase; paths may be relative to `cwd`."""

    argv: tuple[str, ...]
    cwd: Path
    job: str = ""
    log_paths: tuple[str, ...] = ()
    node_logs: tuple[str, ...] = ()  # on every node of a SLURM job; `%N` is the node's name
    checkpoint_directory: str = ""
    resume_arguments: tuple[str, ...] = ()  # a template of words for a start that has a checkpoint
    policy: str = ""
    policy_text: str = ""  # where the job brings a policy of its own
    any_line: bool = False  # any line of the job ends its silence
    armed: bool = False
    nodes: int = 1
    limits: Mapping[str, float] | None = None
    max_restarts: int | None = None
    variables: tuple[str, ...] = ()  # names from our environment
    scheduler: str = ""  # a foreign one, by its name; "" for the one that the command line shows
    follow: bool = False  # a dependent job of SLURM is pointed at the new start of the job that it waits for
    secrets: tuple[str, ...] = ()  # on Ray: NAME=FILE, a file on the cluster
    sidecar: bool = False  # on Ray: a shipper inside the entrypoint
    settings: Mapping[str, str] | None = None  # MIDWATCH_* variables that give our settings to the shipper


class Unwatched(ServiceUnreachable):
    """The watch cannot take the job, and nothing was started."""


@dataclass(frozen=True, slots=True)
class Started:
    """A job that runs or waits in the queue. `key` names its record on `local`, `log` its output there."""

    spec: Spec
    incarnation: str
    key: str = ""
    log: Path | None = None
    tasks: tuple[Started, ...] = ()  # of an array: each is a job of its own, and `spec` is of none
    answer: str = ""  # of `sbatch --parsable`: the id, and on some sites the cluster behind a semicolon
    warnings: tuple[str, ...] = ()


@contextmanager
def before_the_start(settings: Settings) -> Iterator[None]:
    """Turns what keeps the watch from taking the job into `Unwatched`."""
    try:
        yield
    except ServiceUnreachable as error:
        raise Unwatched(error.what, where=error.where, remedy=error.remedy) from error
    except OSError as error:
        raise Unwatched(
            f"the state directory cannot be written: {error.strerror}",
            where=str(error.filename or settings.state_directory),
            remedy="make room there, or choose another one with --state-directory",
        ) from error


def check_room(directory: Path) -> None:
    """Make the directory, and see that it takes what a start writes. Raises OSError."""
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=directory) as probe:
        probe.write(bytes(_START_BYTES))
        probe.flush()


def spec_event(spec: Spec, incarnation: str) -> SpecEvent:
    """The event that gives detect and decide what they need of a spec."""
    return SpecEvent(
        job=spec.job,
        spec=spec_hash(spec),
        policy=spec.policy,
        armed=spec.armed,
        nodes=spec.nodes,
        checkpoint_directory=spec.checkpoint_directory,
        limits=spec.limits,
        max_restarts=spec.max_restarts,
        incarnation=incarnation,
    )


def owner_of(settings: Settings, kind: str) -> tuple[str, str]:
    """Cluster and user: the first two parts of the job's name. An unnamed cluster has its kind as name."""
    unset = settings.cluster == Settings().cluster
    return kind if unset else settings.cluster, getpass.getuser()


def name_of(text: str, owner: tuple[str, str]) -> str:
    """The job's whole name. Raises UsageError for another user's: the executor would refuse its commands."""
    name = job_name(text, cluster=owner[0], user=owner[1])
    if name.user != owner[1]:
        raise UsageError(
            f"{name} is a job of {name.user}, and you are {owner[1]}",
            where="--job",
            remedy=f"leave the user out: --job {name.run}",
        )
    return str(name)


def spec_of(request: RunRequest, settings: Settings, kind: str, job: str) -> Spec:
    logs = tuple(str(request.cwd / path) for path in request.log_paths)
    node_logs = tuple(str(request.cwd / path) for path in request.node_logs)
    argv = request.argv
    if kind == "slurm":
        argv = kept_submission(
            argv,
            cwd=request.cwd,
            scripts=settings.state_directory / "scripts",
            environment=os.environ,
            job=job,
            nodes=request.nodes,
            log_paths=logs,
            node_logs=node_logs,
        )
    else:
        logs += tuple(path.replace("%N", socket.gethostname()) for path in node_logs)
    return Spec(
        job=job,
        cluster=kind,
        argv=argv,
        cwd=str(request.cwd),
        environment={},
        user=getpass.getuser(),
        log_paths=logs,
        checkpoint_directory=_checkpoint_directory(request),
        policy=request.policy or settings.policy,
        armed=request.armed,
        nodes=request.nodes,
        limits={name: float(seconds) for name, seconds in (request.limits or {}).items()},
        max_restarts=request.max_restarts,
        resume_arguments=request.resume_arguments,
        follow=request.follow,
    )


def _checkpoint_directory(request: RunRequest) -> str:
    """The directory as any process finds it. Raises UsageError or ConfigurationError, see `place`."""
    named = request.checkpoint_directory
    if not named:
        return ""
    return str(place(named if is_url(named) else request.cwd / named))
