"""Which submissions of a head are starts of one training, and what its next start is. Pure.

The head is the only memory. Each start carries its number in its metadata or variables. The submission id of
a start follows from its training and from the number of the start before. So two monitors, or a monitor and
midwatch's executor, ask for the same id, and Ray starts it once.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from midwatch.agents.training_monitor.errors import JobNotFound
from midwatch.streams.errors import UsageError
from midwatch.streams.services.ray_jobs import GPUS_METADATA, JOB_METADATA, LIVE

TRAINING, ATTEMPT = "training_monitor_training", "training_monitor_attempt"
"""The metadata by which our starts name their training and their number."""

VARIABLE = "MIDWATCH_ATTEMPT"
"""Where midwatch's executor writes the number of a start."""

RESUME_FROM, RESUME_STEP = "MIDWATCH_RESUME_FROM", "MIDWATCH_RESUME_STEP"
CONFIG_KEYS = (
    "entrypoint",
    "runtime_env",
    "metadata",
    "entrypoint_num_cpus",
    "entrypoint_num_gpus",
    "entrypoint_memory",
    "entrypoint_resources",
    "job_name",
    "resumes",
)
_NAMES = ("job_name", "name")
_BUILTINS = ("exec", "cd", "export", "source", ".", "set", "if", "for", "while", "test", "[")
_SHELL = re.compile(r"[;|&<>()`\n]")
_KEY_DIGITS = 32


@dataclass(frozen=True, slots=True)
class Start:
    """One submission of a training. `retries`: the starts between it and the first one of its run."""

    job: Mapping[str, Any]
    attempt: int
    retries: int

    @property
    def submission_id(self) -> str:
        return str(self.job["submission_id"])

    @property
    def live(self) -> bool:
        return self.job.get("status") in LIVE


def training_of(job: Mapping[str, Any]) -> str:
    """The training that a submission is a start of. One that nobody marked is the first of its own."""
    about = job.get("metadata") or {}
    return str(about.get(JOB_METADATA) or about.get(TRAINING) or f"training_monitor/{job['submission_id']}")


def named(jobs: Sequence[Mapping[str, Any]], name: str, head: str) -> str:
    """The training that a person means: a submission id, a name in its metadata, or a job of midwatch.

    Raises:
        JobNotFound: no submission has the name.
        UsageError: trainings of several users have it.
    """
    found = [job for job in jobs if name in _names(job)]
    if not found:
        raise JobNotFound.of(name, head)
    watched = sorted({training_of(job) for job in found if JOB_METADATA in (job.get("metadata") or {})})
    if len(watched) > 1:
        raise UsageError(
            f"{name} could be {' or '.join(watched)}", where=head, remedy="give the whole name of the job"
        )
    return training_of(max(found, key=_began))


def starts(jobs: Sequence[Mapping[str, Any]], training: str) -> list[Start]:
    """The training's starts, oldest first. One without a number is a person's: it follows the one before."""
    found: list[Start] = []
    for job in sorted((job for job in jobs if training_of(job) == training), key=_began):
        number, before = _number(job), found[-1] if found else None
        attempt = number or (before.attempt + 1 if before else 1)
        found.append(Start(job, attempt, before.retries + 1 if before and number else 0))
    return found


def start_key(training: str, attempt: int) -> str:
    """The submission id of the start that follows this attempt: the effect key of midwatch's executor."""
    text = json.dumps(["effect", training, attempt, "start"], ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_KEY_DIGITS]


def successor(start: Start, training: str, checkpoint: str, step: int | None) -> dict[str, Any]:
    """The request for the start after this one: the same entrypoint and environment, told its checkpoint.

    Ray shows the resources of an entrypoint nowhere. The GPUs stand in the metadata of jobs of ours.
    """
    job = start.job
    about, runtime = dict(job.get("metadata") or {}), dict(job.get("runtime_env") or {})
    entrypoint, old = str(job.get("entrypoint") or ""), (runtime.get("env_vars") or {}).get(RESUME_FROM)
    config: dict[str, Any] = {
        "entrypoint": entrypoint.replace(old, checkpoint) if old and checkpoint else entrypoint,
        "runtime_env": runtime,
        "metadata": about,
    }
    if gpus := about.get(GPUS_METADATA):
        config["entrypoint_num_gpus"] = float(gpus)
    return request(config, training, start.attempt, checkpoint, step)


def request(
    config: Mapping[str, Any], training: str, attempt: int, checkpoint: str, step: int | None
) -> dict[str, Any]:
    """The body of `POST /api/jobs/` for the start after `attempt`."""
    runtime = dict(config.get("runtime_env") or {})
    kept = {k: v for k, v in (runtime.get("env_vars") or {}).items() if k not in (RESUME_FROM, RESUME_STEP)}
    variables = {VARIABLE: str(attempt + 1)} | ({RESUME_FROM: checkpoint} if checkpoint else {})
    variables |= {RESUME_STEP: str(step)} if checkpoint and step is not None else {}
    about = {str(k): str(v) for k, v in (config.get("metadata") or {}).items()}
    about |= {"job_name": str(config["job_name"])} if config.get("job_name") else {}
    about |= {} if JOB_METADATA in about else {TRAINING: training}
    if gpus := config.get("entrypoint_num_gpus"):
        about[GPUS_METADATA] = f"{gpus:g}"
    return {
        **{key: value for key, value in config.items() if key.startswith("entrypoint_")},
        "submission_id": start_key(training, attempt),
        "entrypoint": without_shell(_filled(str(config["entrypoint"]), checkpoint, step)),
        "runtime_env": {**runtime, "env_vars": {**kept, **variables}},
        "metadata": {**about, ATTEMPT: str(attempt + 1)},
    }


def training_of_config(config: Mapping[str, Any], directory: str) -> str:
    """The training of a configuration that names no job: its command and its checkpoint directory."""
    what = json.dumps([config.get("entrypoint"), config.get("runtime_env"), directory], sort_keys=True)
    return f"training_monitor/{hashlib.sha256(what.encode()).hexdigest()[:_KEY_DIGITS]}"


def without_shell(entrypoint: str) -> str:
    """The entrypoint with `exec` before a single command: no shell lives between Ray and the driver."""
    try:
        words = shlex.split(entrypoint)
    except ValueError:
        return entrypoint
    if not words or words[0] in _BUILTINS or "=" in words[0] or _SHELL.search(entrypoint):
        return entrypoint
    return f"exec {entrypoint}"


def _filled(entrypoint: str, checkpoint: str, step: int | None) -> str:
    """The entrypoint with the checkpoint in the place of its placeholders, quoted for the shell."""
    filled = entrypoint.replace("{checkpoint}", shlex.quote(checkpoint))
    return filled if step is None else filled.replace("{step}", str(step))


def _names(job: Mapping[str, Any]) -> set[str]:
    about = job.get("metadata") or {}
    watched = str(about.get(JOB_METADATA) or "")
    run = watched.rpartition("/")[2]
    return {str(job["submission_id"]), watched, run, *(str(about.get(key) or "") for key in _NAMES)} - {""}


def _number(job: Mapping[str, Any]) -> int:
    """The number that the start carries; 0 if it carries none. The executor's stands in a variable."""
    about, runtime = job.get("metadata") or {}, job.get("runtime_env") or {}
    attempt = (runtime.get("env_vars") or {}).get(VARIABLE, "") or about.get(ATTEMPT, "")
    return int(attempt) if str(attempt).isdigit() else 0


def _began(job: Mapping[str, Any]) -> int:
    return int(job.get("start_time") or 0)
