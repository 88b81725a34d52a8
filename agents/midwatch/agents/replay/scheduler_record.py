"""The scheduler's record of an ended job, as a person saved it, for the replay of a saved log. Pure.

The text and the JSON of sacct and scontrol are read, and jobs of Ray's Jobs API, of `ray job status` and of
KubeRay. What stands around the record, such as a prompt or a warning, does no harm.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from midwatch.agents.schedulers.base import StartState
from midwatch.agents.schedulers.ray import saved_jobs as ray
from midwatch.agents.schedulers.saved_job import SavedJob
from midwatch.agents.schedulers.slurm.saved_json import rows_of_json
from midwatch.agents.schedulers.slurm.saved_rows import jobs_in
from midwatch.agents.schedulers.slurm.saved_tables import rows_of_blocks, rows_of_table
from midwatch.streams.errors import UsageError

_REMEDY = "save the output of sacct, sacct --json, scontrol show job, or of Ray's GET /api/jobs/ID"
_SIGNALLED = 128
_SIGNALS = 64
_SHOWN = 6  # jobs of a record that an error names
_BLOCK = re.compile(r"(?:^|\s)JobState=")
_JSON = re.compile(r"^[ \t]*(?=[{\[])", re.M)


def from_exit_code(code: int) -> StartState:
    """The end of a process that a shell reports by this code. 129 to 192 name a signal.

    255 is no signal: ssh says it of a lost connection, and a program of its own end by -1.
    """
    if code == 0:
        return StartState("ended", "COMPLETED", "success", exit_code=0)
    signal = code - _SIGNALLED if _SIGNALLED < code <= _SIGNALLED + _SIGNALS else None
    signal = -code if code < 0 else signal
    return StartState("ended", "FAILED", "crash", "", None if signal else code, signal)


def from_text(text: str, where: str) -> StartState:
    """The state of the one job in a saved record.

    Raises:
        UsageError: no state of an ended job stands there, or those of several jobs.
    """
    return ended_job(text, where, ()).state


def ended_job(text: str, where: str, clues: Iterable[str]) -> SavedJob:
    """The ended job in a saved record. Of several jobs it is the one whose id a clue holds.

    `clues`: texts that may hold the id, the surest first. They are taken only if they are needed.

    Raises:
        UsageError: no state of an ended job stands there, or no clue tells which of several it is.
    """
    try:
        jobs = jobs_of_record(text)
    except ValueError as error:
        remedy = "save it anew with `sacct -P -j ID`, which prints a header and cuts nothing"
        raise UsageError(str(error), where=where, remedy=remedy) from error
    if not jobs:
        raise UsageError("no state of a job stands there", where=where, remedy=_REMEDY)
    job = _chosen(jobs, clues)
    if job is None:
        names = [next(iter(each.names), "one without an id") for each in jobs]
        shown = ", ".join(names[:_SHOWN] + [".."] * (len(names) > _SHOWN))
        raise UsageError(
            f"{len(jobs)} jobs stand there, and the log does not tell which is its own: {shown}",
            where=where,
            remedy="name it by `--job ID`, or save the record of that job alone",
        )
    state = job.state
    if state.kind == "unknown":
        raise UsageError(f"the state is none that midwatch knows: {state.word}", where=where, remedy=_REMEDY)
    if not state.over:
        raise UsageError(f"the job had not ended: {state.word}", where=where, remedy="replay needs its end")
    return job


def jobs_of_record(text: str) -> list[SavedJob]:
    """All jobs of a saved record, ended or not. Raises ValueError: the record can be read in two ways."""
    text = text.removeprefix("\ufeff")
    for place in _JSON.finditer(text):
        try:
            record, _ = json.JSONDecoder().raw_decode(text, place.end())
        except (ValueError, RecursionError):
            continue
        if isinstance(record, Mapping | list):
            return _of_json(record)
    if _BLOCK.search(text):
        return jobs_in(rows_of_blocks(text))
    return ray.jobs_of_text(text) or jobs_in(rows_of_table(text))


def _of_json(record: Mapping[str, Any] | list[Any]) -> list[SavedJob]:
    listed = record if isinstance(record, list) else record.get("jobs", record.get("items", [record]))
    jobs = [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    if any(map(ray.is_ray_job, jobs)):
        return [ray.job_of(job) for job in jobs if ray.is_ray_job(job)]
    return jobs_in([row for job in jobs for row in rows_of_json(job)])


def _chosen(jobs: Sequence[SavedJob], clues: Iterable[str]) -> SavedJob | None:
    """The job that the clues name, each narrowing what those before it left; None if several are left."""
    # The tasks of an array that were not started yet stand in one row, which is no job that wrote a log.
    left = [job for job in jobs if "[" not in "".join(job.names[:1])] or list(jobs)
    if len(left) == 1:
        return left[0]
    for clue in clues:
        named = [
            (max((len(name) for name in job.names if _holds(clue, name)), default=0), job) for job in left
        ]
        longest = max((length for length, _ in named), default=0)
        if longest:
            left = [job for length, job in named if length == longest]
        if len(left) == 1:
            return left[0]
    return None


def _holds(clue: str, name: str) -> bool:
    before = "" if name[:1].isdigit() else "A-Za-z"  # `train.o77` is the output of job 77
    return re.search(rf"(?<![0-9{before}]){re.escape(name)}(?![0-9A-Za-z])", clue) is not None
