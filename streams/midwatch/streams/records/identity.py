"""The names of jobs and incarnations. Pure: texts in, texts out.

A **job** is `cluster:user/run`. The run is the user's `--job`, else the first native id. It is never the
scheduler's job name, because two jobs may share one.

An **incarnation** is one start of a job, under a name that no other start has: `slurm:<id>:<restarts>`,
`ray:<submission id>:<session>`, `local:<pid>:<start time in clock ticks since boot>`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from midwatch.streams.errors import ConfigurationError

_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}")
_JOB = re.compile(rf"({_PART.pattern}):({_PART.pattern})/({_PART.pattern})")


@dataclass(frozen=True, slots=True)
class JobName:
    """The three parts of a job's name."""

    cluster: str
    user: str
    run: str

    def __str__(self) -> str:
        return f"{self.cluster}:{self.user}/{self.run}"


def is_job(key: bytes) -> bool:
    """Whether a message's key is a job's whole name. A stranger may send any bytes."""
    return _JOB.fullmatch(key.decode("latin-1")) is not None


def job_name(text: str, *, cluster: str = "local", user: str = "") -> JobName:
    """A job's full name from a person's text: `run`, or the whole `cluster:user/run`.

    Raises:
        ConfigurationError: a part is empty, too long, or holds anything but letters, digits and `._@+-`.
    """
    if match := _JOB.fullmatch(text):
        return JobName(match[1], match[2], match[3])
    name = JobName(cluster, user, text)
    for part in (name.cluster, name.user, name.run):
        if not _PART.fullmatch(part):
            raise ConfigurationError(
                f"{part!r} cannot be part of a job's name",
                where="--job",
                remedy="use letters, digits and ._@+- (at most 128), or the whole cluster:user/run",
            )
    return name


def message_key(job: str, node: str) -> bytes:
    """The key of all messages of one node of one job. One partition keeps lines and heartbeats in order."""
    return f"{job}/{node}".encode()


def slurm_incarnation(job_id: str, restarts: int) -> str:
    """A start of a SLURM job. Its id alone is not enough, because a requeue keeps the id."""
    return f"slurm:{job_id}:{restarts}"


def local_incarnation(pid: int, start_ticks: int) -> str:
    """A process on this machine. Its pid alone is not enough, because pids are reused."""
    return f"local:{pid}:{start_ticks}"


def ray_incarnation(submission_id: str, session: str) -> str:
    """A Ray job. Its submission id alone is not enough, because a new head accepts the id again."""
    return f"ray:{submission_id}:{session}"


def native_id(incarnation: str) -> str:
    """The scheduler's own id within an incarnation."""
    return incarnation.split(":", 2)[1]
