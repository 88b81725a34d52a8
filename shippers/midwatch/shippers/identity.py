"""Who a shipper speaks for: from its command line and environment, never from the text it reads. Pure.

The environment of a job that `midwatch run` started says it outright (`MIDWATCH_JOB`, `MIDWATCH_INCARNATION`,
`MIDWATCH_JOB_PID`); else the scheduler's variables do; else the process that is watched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from midwatch.streams.errors import ConfigurationError
from midwatch.streams.records import Origin
from midwatch.streams.records.codec import out_of_bounds
from midwatch.streams.records.identity import (
    job_name,
    local_incarnation,
    native_id,
    ray_incarnation,
    slurm_incarnation,
)


@dataclass(frozen=True, slots=True)
class IdentityArguments:
    """What the command line says; None where it says nothing."""

    job: str | None = None
    node: str | None = None
    nodes: int | None = None
    cluster: str | None = None
    pid: int | None = None


@dataclass(frozen=True, slots=True)
class Machine:
    """What the shell found out about this process and its node."""

    host: str
    user: str
    boot_id: str
    shipper: str  # unique to this start of the shipper
    pid: int  # of the process that the job is here, or the shipper's own
    start_ticks: int


def identify(
    told: IdentityArguments, environment: Mapping[str, str], machine: Machine, remembered: str = ""
) -> Origin:
    """The origin of all that this shipper sends.

    `remembered` is the incarnation that an earlier start of this shipper spoke for. It counts only where
    nothing else can tell, so that a shipper that died and came back is not taken for a new start of the job.

    Raises:
        ConfigurationError: the job has no name, or the number of nodes is none.
    """
    incarnation = _incarnation(told, environment, machine, remembered)
    job = told.job or environment.get("MIDWATCH_JOB") or _native_job(environment)
    if not job:
        raise ConfigurationError(
            "nothing says which job these lines belong to",
            where="midwatch ship",
            remedy="name it: midwatch ship --job NAME, or set MIDWATCH_JOB",
        )
    cluster = told.cluster or environment.get("SLURM_CLUSTER_NAME") or "local"
    user = environment.get("SLURM_JOB_USER") or machine.user
    origin = Origin(
        job=str(job_name(job, cluster=cluster, user=user)),
        node=told.node
        or environment.get("MIDWATCH_NODE")
        or environment.get("SLURMD_NODENAME")
        or machine.host,
        nodes=told.nodes or _nodes(environment),
        incarnation=incarnation,
        boot_id=machine.boot_id,
        shipper=machine.shipper,
    )
    if wrong := out_of_bounds(origin):
        raise ConfigurationError(
            f"no record can carry this identity: {wrong}",
            where="midwatch ship",
            remedy="see --node, --nodes, MIDWATCH_NODE and MIDWATCH_INCARNATION: short names on one line",
        )
    return origin


def _incarnation(
    told: IdentityArguments, environment: Mapping[str, str], machine: Machine, remembered: str
) -> str:
    if given := environment.get("MIDWATCH_INCARNATION"):
        return given
    if slurm := environment.get("SLURM_JOB_ID"):
        count = environment.get("SLURM_RESTART_COUNT") or "0"
        if not count.isdigit():
            raise ConfigurationError(
                f"{count!r} is no number of restarts",
                where="SLURM_RESTART_COUNT",
                remedy="SLURM sets it; unset what else did",
            )
        return slurm_incarnation(slurm, int(count))
    if ray := environment.get("RAY_SUBMISSION_ID") or environment.get("RAY_JOB_SUBMISSION_ID"):
        return ray_incarnation(ray, environment.get("RAY_SESSION_NAME", ""))
    known = told.pid is not None or "MIDWATCH_JOB_PID" in environment
    return remembered if remembered and not known else local_incarnation(machine.pid, machine.start_ticks)


def _native_job(environment: Mapping[str, str]) -> str:
    """The scheduler's id of the job; of an array task the id that a person sees, `44_3`."""
    array, task = environment.get("SLURM_ARRAY_JOB_ID"), environment.get("SLURM_ARRAY_TASK_ID")
    if array and task:
        return f"{array}_{task}"
    if slurm := environment.get("SLURM_JOB_ID"):
        return slurm
    given = environment.get("MIDWATCH_INCARNATION", "")
    if given.count(":") > 1:
        return native_id(given)
    return environment.get("RAY_SUBMISSION_ID") or environment.get("RAY_JOB_SUBMISSION_ID") or ""


def _nodes(environment: Mapping[str, str]) -> int:
    for variable in ("MIDWATCH_NODES", "SLURM_NNODES", "SLURM_JOB_NUM_NODES"):
        if text := environment.get(variable):
            if not text.isdigit() or int(text) < 1:
                raise ConfigurationError(
                    f"{text!r} is no number of nodes",
                    where=variable,
                    remedy="set it to how many nodes this job runs on, or use --nodes",
                )
            return int(text)
    return 1
