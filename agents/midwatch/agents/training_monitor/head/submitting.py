"""Gives a head the local working directory of a job, and the job itself."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from midwatch.agents.schedulers.ray.zipping import zipped
from midwatch.agents.training_monitor.errors import HeadUnreachable
from midwatch.agents.training_monitor.head.access import JOBS, AddressedHead, PodHead
from midwatch.streams.errors import UsageError
from midwatch.streams.services.ray_jobs import HeadAnswer

_REMOTE = re.compile(r"[a-z0-9]+://", re.IGNORECASE)
_OK, _BAD_REQUEST = 200, 400
_EXISTS = "already exists"


def submit(head: AddressedHead | PodHead, request: Mapping[str, Any]) -> bool:
    """Submits a job once. True: Ray has it, from now or from earlier. False: the head did not say so.

    After False ask again: the submission may have taken effect, and a repeated one starts nothing.

    Raises:
        UsageError: Ray refuses the job, or its working directory cannot be read.
    """
    runtime = dict(request["runtime_env"])
    directory = str(runtime.get("working_dir") or "")
    local = directory and not _REMOTE.match(directory)
    if local and isinstance(head, PodHead):
        return _by_ray_in_the_pod(head, {**request, "runtime_env": runtime})
    if local and isinstance(head, AddressedHead):
        uri = _uploaded(head, Path(directory).expanduser(), tuple(runtime.get("excludes") or ()))
        if not uri:
            return False
        runtime["working_dir"] = uri
    body = json.dumps({**request, "runtime_env": runtime}).encode()
    answer = head.call("POST", JOBS, body)
    if answer.status == _BAD_REQUEST:
        raise UsageError(f"Ray refuses the job: {answer.text}", where=head.name, remedy="check its config")
    return answer.status == _OK or _EXISTS in answer.body.decode(errors="replace")


def _uploaded(head: AddressedHead, path: Path, excludes: tuple[str, ...]) -> str:
    """The URI of the directory's package, which the head now holds; "" if the head did not take it."""
    is_archive = path.suffix == ".zip" and path.is_file()
    content = path.read_bytes() if is_archive else zipped(path, excludes)
    name = f"_ray_pkg_{hashlib.sha256(content).hexdigest()}.zip"
    where = f"/api/packages/gcs/{name}"
    held = head.call("GET", where).status == _OK or head.call("PUT", where, content).status == _OK
    return f"gcs://{name}" if held else ""


def _by_ray_in_the_pod(head: PodHead, request: Mapping[str, Any]) -> bool:
    """Lets Ray's own client in the pod submit: the working directory is one of the pod."""
    line = ["ray", "job", "submit", "--no-wait", "--submission-id", str(request["submission_id"])]
    line += ["--metadata-json", json.dumps(request["metadata"])]
    line += ["--runtime-env-json", json.dumps(request["runtime_env"])]
    for key, value in request.items():
        if key.startswith("entrypoint_"):
            text = json.dumps(value) if isinstance(value, dict) else f"{value:g}"
            line += [f"--{key.replace('_', '-')}", text]
    entrypoint = str(request["entrypoint"])
    words = shlex.split(entrypoint) if entrypoint.startswith("exec ") else ["sh", "-c", entrypoint]
    answer = head.execute([*line, "--", *words])
    if isinstance(answer, HeadAnswer):
        if "does not exist" in answer.error or "is not a valid" in answer.error:
            raise UsageError(answer.error, where=head.name, remedy="check the working_dir of its runtime_env")
        return False
    return True


def unsubmitted(head: AddressedHead | PodHead, submission_id: str) -> HeadUnreachable:
    """The error after the last try."""
    return HeadUnreachable(
        f"it did not confirm the submission {submission_id}",
        where=head.name,
        remedy="verify that the head's name is correct and that it answers, then call again: "
        "the same submission is never started twice",
    )
