"""The jobs of a saved record of Ray: of its Jobs API, of `ray job status`, or of KubeRay. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from midwatch.agents.schedulers.base import StartState
from midwatch.agents.schedulers.ray import states
from midwatch.agents.schedulers.saved_job import SavedJob

_COLOUR = re.compile(r"\x1b\[[\d;]*m")
_STATUS = re.compile(
    r"^.{0,40}?(?:Status for job '(?P<a>[^']+)': (?P<word>[A-Z]+)(?:: (?P<message>.*))?"
    r"|Job '(?P<b>[^']+)' (?P<said>succeeded|failed|was stopped)\b).*$",
    re.M,
)
_SAID = {"succeeded": "SUCCEEDED", "failed": "FAILED", "was stopped": "STOPPED"}
_MESSAGE = re.compile(r"Status message: (.*)")
_EXCEPTION = re.compile(r"^(?P<name>[\w.]+(?:Error|Exception|Exit|Interrupt))\b.*$", re.M)
_MEMORY = "ray.exceptions.OutOfMemoryError"
_CODE = re.compile(r"failed with exit code (-?\d+)")
_DEPLOYED = {"Complete": "SUCCEEDED", "Failed": "FAILED"}


def is_ray_job(record: Mapping[str, Any]) -> bool:
    """Whether this is a job of Ray's Jobs API or a RayJob of Kubernetes."""
    return record.get("kind") == "RayJob" or isinstance(record.get("status"), str)


def job_of(record: Mapping[str, Any]) -> SavedJob:
    """The job of `GET /api/jobs/ID`, or of `kubectl get rayjob NAME -o json`."""
    if record.get("kind") == "RayJob":
        return _of_kubernetes(record)
    names = [str(record.get(key) or "") for key in ("submission_id", "job_id")]
    return SavedJob("ray", tuple(filter(None, names)), _state(record))


def jobs_of_text(text: str) -> list[SavedJob]:
    """The jobs of `ray job status` and of `ray job submit`. The last word on each counts."""
    plain = _COLOUR.sub("", text)
    found = list(_STATUS.finditer(plain))
    jobs: dict[str, SavedJob] = {}
    for index, match in enumerate(found):
        stop = found[index + 1].start() if index + 1 < len(found) else len(plain)
        message = _MESSAGE.search(plain, match.end(), stop)
        record = {
            "status": match["word"] or _SAID[match["said"]],
            "message": match["message"] or (plain[message.start(1) : stop] if message else ""),
        }
        name = match["a"] or match["b"]
        jobs[name] = SavedJob("ray", (name,), _state(record))
    return list(jobs.values())


def _state(record: Mapping[str, Any]) -> StartState:
    """The state, with the exit code that only the message tells where no field does.

    The message holds the last lines of the log, which the saved log may lack. They count where they end in
    Ray's own word on memory: what stands above, the job may have got over.
    """
    code, message = record.get("driver_exit_code"), str(record.get("message") or "")
    if code is None and (told := _CODE.search(message)):
        code = int(told[1])
    state = states.state({**record, "driver_exit_code": code})
    *_, last = (None, *_EXCEPTION.finditer(message))
    if state.word != "FAILED" or state.error_type or last is None or last["name"] != _MEMORY:
        return state
    return replace(state, error_type="host_oom", reason=f"{state.reason}: {last[0]}"[: states.LONGEST])


def _of_kubernetes(record: Mapping[str, Any]) -> SavedJob:
    metadata, status = _mapping(record.get("metadata")), _mapping(record.get("status"))
    names = [str(each or "") for each in (metadata.get("name"), status.get("jobId"))]
    deployed, reason = str(status.get("jobDeploymentStatus") or ""), str(status.get("reason") or "")
    word = str(status.get("jobStatus") or "")
    message = str(status.get("message") or "")
    if deployed == "Retrying":
        state = StartState(
            "ended", "REQUEUED", "ended", reason="KubeRay has already started it again (Retrying)"
        )
    elif deployed == "Failed" and reason == "DeadlineExceeded":
        state = StartState("ended", "FAILED", "timeout", reason=f"{reason}: {message}".rstrip(": "))
    else:
        over = word in (*_DEPLOYED.values(), "STOPPED")
        word = word if over else _DEPLOYED.get(deployed, word)
        waits = StartState("queued", deployed or "without a status")
        state = _state({"status": word, "message": message or reason}) if word else waits
    return SavedJob("ray", tuple(filter(None, names)), state)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
