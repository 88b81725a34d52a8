"""Turns what the Jobs API says of a job into our states. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from midwatch.agents.schedulers.base import SOMEBODY, SchedulerJob, StartState
from midwatch.streams.records.identity import ray_incarnation
from midwatch.streams.services.ray_jobs import GPUS_METADATA, JOB_METADATA

ANY_SESSION = "0"
"""In an incarnation: whichever run of the head. The executor knows no more of a job that it has lost."""

SUBMISSION_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
"""Ray takes an id with a slash, fails, and leaves that id pending for ever."""

GPUS_HELD = "GPUS_HELD"
"""Our word for a running job whose entrypoint holds the GPUs that tasks wait for."""

_LIVE = {"PENDING": "queued", "RUNNING": "running"}
_NODE_DIED = re.compile(
    r"node (?:died|was|is|has|failed)|NODE_DIED|node .{0,60}(?:dead|died|terminated)", re.I
)
LONGEST = 300


def sweep(jobs: Sequence[Mapping[str, Any]], session: str) -> tuple[SchedulerJob, ...]:
    """The submissions among the jobs of `GET /api/jobs/`.

    A driver that somebody started without a submission has no id that could be stopped, so it is left out.
    """
    return tuple(found for job in jobs if (found := scheduler_job(job, session)) is not None)


def holds_gpus(job: Mapping[str, Any]) -> bool:
    """Whether it runs, its entrypoint holds GPUs, and it has tasks of Ray: then these get other GPUs."""
    return bool(
        job.get("status") == "RUNNING"
        and GPUS_METADATA in (job.get("metadata") or {})
        and job.get("job_id")  # a driver without it never connected to Ray: it may use the GPUs itself
    )


def gpus_short(status: Mapping[str, Any]) -> str:
    """What waits for GPUs, by `GET /api/cluster_status`, if fewer are free; "" otherwise."""
    report = ((status.get("data") or {}).get("clusterStatus") or {}).get("loadMetricsReport") or {}
    used, total = (report.get("usage") or {}).get("GPU") or (0.0, 0.0)
    demands = [
        shape.get("GPU", 0.0) * count
        for shape, count in report.get("resourceDemand") or ()
        if shape.get("GPU")
    ]
    for group, count in report.get("pgDemand") or ():
        bundles = group.get("bundles") or () if isinstance(group, dict) else ()
        demands += [bundle.get("GPU", 0.0) * many * count for bundle, many in bundles]
    wanted, free = sum(demands), total - used
    return f"{wanted:g} GPUs are waited for and {free:g} of {total:g} are free" if wanted > free else ""


def held(job: SchedulerJob, short: str, gpus: str) -> SchedulerJob:
    """The job in the state `GPUS_HELD`, with the remedy as its reason."""
    reason = (
        f"its entrypoint holds {gpus} GPUs, which Ray gives to no task, while {short}: "
        "submit it without --entrypoint-num-gpus, unless the entrypoint itself uses them"
    )
    return replace(job, state=StartState("running", word=GPUS_HELD, reason=reason))


def scheduler_job(job: Mapping[str, Any], session: str) -> SchedulerJob | None:
    """One job under this run of the head; None for a driver without a submission."""
    submission = job.get("submission_id") or ""
    if not submission or job.get("type") == "DRIVER":
        return None
    metadata = job.get("metadata") or {}
    return SchedulerJob(
        native_id=submission,
        incarnation=ray_incarnation(submission, session),
        state=state(job),
        effect_key=submission if JOB_METADATA in metadata else "",
        started=str(job.get("start_time") or ""),
    )


def state(job: Mapping[str, Any]) -> StartState:
    """The state of one job. A status that this version does not know is `unknown`, under Ray's word."""
    status = str(job.get("status") or "")
    reason = _reason(job)
    if status in _LIVE:
        return StartState("queued" if status == "PENDING" else "running", word=status, reason=reason)
    code, number = _exit(job.get("driver_exit_code"))
    match status:
        case "SUCCEEDED":
            return StartState("ended", status, "success", exit_code=0)
        case "STOPPED":
            return StartState("ended", status, "ended", "cancelled", code, number, by_person=SOMEBODY)
        case "FAILED":
            return StartState("ended", status, "crash", _error_type(job), code, number, reason)
        case _:
            return StartState("unknown", word=status, reason=f"Ray says {status or 'nothing'}: {reason}")


def _exit(code: object) -> tuple[int | None, int | None]:
    """Exit code and signal. Ray gives the signal as a negative code, or none where nobody saw the end."""
    if not isinstance(code, int):
        return None, None
    return (None, -code) if code < 0 else (code, None)


def _error_type(job: Mapping[str, Any]) -> str:
    """Ray's own word for the end, where it knows more than that the driver failed."""
    word, message = str(job.get("error_type") or ""), str(job.get("message") or "")
    if word.startswith("JOB_SUPERVISOR_ACTOR"):
        return "ray_node_died" if _NODE_DIED.search(message) else "ray_actor_died"
    return "config" if word == "RUNTIME_ENV_SETUP_FAILURE" else ""


def _reason(job: Mapping[str, Any]) -> str:
    """Ray's message without the end of the log that it carries."""
    lines = str(job.get("message") or "").split("\n", 1)[0].split(", last available logs", 1)
    return " ".join(filter(None, [str(job.get("error_type") or ""), lines[0].strip()]))[:LONGEST]
