"""The job that a shipper sends for, by its command line and environment, never by the text it reads. Pure.

`midwatch run` sets the identity in the job's environment: `MIDWATCH_JOB`, `MIDWATCH_INCARNATION`,
`MIDWATCH_JOB_PID`. Otherwise the scheduler's variables give it, or else the watched process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from midwatch.streams.errors import ConfigurationError
from midwatch.streams.records import CheckpointChoice, Origin
from midwatch.streams.records.codec import out_of_bounds
from midwatch.streams.records.identity import (
    job_name,
    local_incarnation,
    native_id,
    ray_incarnation,
    slurm_incarnation,
)
from midwatch.streams.records.words import Unit

RESUME_FROM, RESUME_STEP = "MIDWATCH_RESUME_FROM", "MIDWATCH_RESUME_STEP"
RESUME_UNIT, RESUME_WRITTEN = "MIDWATCH_RESUME_UNIT", "MIDWATCH_RESUME_WRITTEN_MS"
"""Variables of a start's checkpoint. A start that chose it itself gives the last two to its shipper."""


@dataclass(frozen=True, slots=True)
class IdentityArguments:
    """The identity on the command line; None where an option is missing."""

    job: str | None = None
    node: str | None = None
    nodes: int | None = None
    cluster: str | None = None
    pid: int | None = None


@dataclass(frozen=True, slots=True)
class Machine:
    """This process and its node, as the shell found them."""

    host: str
    user: str
    boot_id: str
    shipper: str  # unique to this start of the shipper
    pid: int  # of the job's process on this node, or the shipper's own
    start_ticks: int


def identify(
    arguments: IdentityArguments, environment: Mapping[str, str], machine: Machine, remembered: str = ""
) -> Origin:
    """The origin of all records of this shipper.

    `remembered` is the incarnation in the checkpoint of an earlier start of this shipper. It counts only
    where no other source gives one. So a shipper that died and came back does not look like a new start of
    the job.

    Raises:
        ConfigurationError: the job has no name, a number is malformed, or the identity does not fit a record.
    """
    incarnation = _incarnation(arguments, environment, machine, remembered)
    job = arguments.job or environment.get("MIDWATCH_JOB") or _native_job(environment)
    if not job:
        raise ConfigurationError(
            "nothing says which job these lines belong to",
            where="midwatch ship",
            remedy="name it: midwatch ship --job NAME, or set MIDWATCH_JOB",
        )
    cluster = arguments.cluster or environment.get("SLURM_CLUSTER_NAME") or "local"
    user = environment.get("SLURM_JOB_USER") or machine.user
    origin = Origin(
        job=str(job_name(job, cluster=cluster, user=user)),
        node=arguments.node
        or environment.get("MIDWATCH_NODE")
        or environment.get("SLURMD_NODENAME")
        or machine.host,
        nodes=arguments.nodes or _nodes(environment),
        incarnation=incarnation,
        boot_id=machine.boot_id,
        shipper=machine.shipper,
    )
    if wrong := out_of_bounds(origin):
        raise ConfigurationError(
            f"this identity does not fit a record: {wrong}",
            where="midwatch ship",
            remedy="see --node, --nodes, MIDWATCH_NODE and MIDWATCH_INCARNATION: short names on one line",
        )
    return origin


def checkpoint_choice(environment: Mapping[str, str]) -> CheckpointChoice | None:
    """The checkpoint that this start chose for itself; None if it chose none or another chose for it."""
    step, written = environment.get(RESUME_STEP, ""), environment.get(RESUME_WRITTEN, "")
    path = environment.get(RESUME_FROM, "")
    if not (path and step.isdecimal() and written.isdecimal()):
        return None
    unit: Unit = "epoch" if environment.get(RESUME_UNIT) == "epoch" else "step"
    return CheckpointChoice(int(step), path, unit, int(written))


def _incarnation(
    arguments: IdentityArguments, environment: Mapping[str, str], machine: Machine, remembered: str
) -> str:
    if incarnation := environment.get("MIDWATCH_INCARNATION"):
        return incarnation
    if slurm := environment.get("SLURM_JOB_ID"):
        count = environment.get("SLURM_RESTART_COUNT") or "0"
        if not count.isdigit():
            raise ConfigurationError(
                f"{count!r} is not a number of restarts",
                where="SLURM_RESTART_COUNT",
                remedy="unset it where you set it: SLURM sets it by itself",
            )
        return slurm_incarnation(slurm, int(count))
    if ray := environment.get("RAY_SUBMISSION_ID") or environment.get("RAY_JOB_SUBMISSION_ID"):
        return ray_incarnation(ray, environment.get("RAY_SESSION_NAME", ""))
    known = arguments.pid is not None or "MIDWATCH_JOB_PID" in environment
    return remembered if remembered and not known else local_incarnation(machine.pid, machine.start_ticks)


def _native_job(environment: Mapping[str, str]) -> str:
    """The scheduler's id of the job; of an array task the id that squeue shows, `44_3`."""
    array, task = environment.get("SLURM_ARRAY_JOB_ID"), environment.get("SLURM_ARRAY_TASK_ID")
    if array and task:
        return f"{array}_{task}"
    if slurm := environment.get("SLURM_JOB_ID"):
        return slurm
    incarnation = environment.get("MIDWATCH_INCARNATION", "")
    if incarnation.count(":") > 1:
        return native_id(incarnation)
    return environment.get("RAY_SUBMISSION_ID") or environment.get("RAY_JOB_SUBMISSION_ID") or ""


def _nodes(environment: Mapping[str, str]) -> int:
    for variable in ("MIDWATCH_NODES", "SLURM_NNODES", "SLURM_JOB_NUM_NODES"):
        if text := environment.get(variable):
            if not text.isdigit() or int(text) < 1:
                raise ConfigurationError(
                    f"{text!r} is not a number of nodes",
                    where=variable,
                    remedy="set it to the number of this job's nodes, or use --nodes",
                )
            return int(text)
    return 1
