"""A submission to Ray as `midwatch run` keeps it, and the request that it becomes. Pure but for a file read.

The kept file holds the runtime environment, so a secret in it never reaches Kafka. Its name is the hash of
its content. The signed spec names the file and holds the words of the entrypoint.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from midwatch.agents.schedulers.base import StartSpec
from midwatch.agents.schedulers.ray.packages import KeptPackage
from midwatch.streams.errors import ConfigurationError
from midwatch.streams.records.codec import content_hash
from midwatch.streams.services.ray_jobs import GPUS_METADATA, JOB_METADATA, SIDECAR_METADATA

KEPT = "--kept="
HEAD = ("ray", "job", "submit")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class KeptSubmission:
    """What the person asked of Ray, besides the entrypoint.

    `fields`: of the request, such as `entrypoint_num_gpus`. `secrets`: name of a variable to the file that
    holds its value on the cluster. `logs`: what the sidecar follows; `sidecar`: whether there is one.
    """

    fields: dict[str, Any]
    packages: tuple[str, ...] = ()
    secrets: tuple[tuple[str, str], ...] = ()
    sidecar: bool = False
    logs: tuple[str, ...] = ()
    nodes: int = 1

    def content(self) -> bytes:
        """The bytes of the kept file."""
        names = ("fields", "packages", "secrets", "sidecar", "logs", "nodes")
        return json.dumps({name: getattr(self, name) for name in names}, sort_keys=True).encode()


def is_ray(argv: tuple[str, ...]) -> bool:
    """Whether the command line submits to Ray."""
    return len(argv) > 3 and Path(argv[0]).name == HEAD[0] and argv[1:3] == HEAD[1:]


def kept_argv(path: Path, entrypoint: tuple[str, ...]) -> tuple[str, ...]:
    """The argv of a spec: where the submission is kept, and the entrypoint."""
    return (*HEAD, f"{KEPT}{path}", "--", *entrypoint)


def file_name(content: bytes) -> str:
    """The name under which a kept submission lies."""
    return f"{content_hash({'submission': content.decode()})}.json"


def kept(argv: tuple[str, ...]) -> tuple[KeptSubmission, Path, tuple[str, ...]]:
    """The submission that a spec's argv names, its folder, and the entrypoint's words.

    Raises:
        ConfigurationError: the file is gone, or was changed after the spec was signed.
    """
    again = "start the job with `midwatch run` again"
    if not is_ray(argv) or not argv[3].startswith(KEPT) or argv[4:5] != ("--",) or not argv[5:]:
        raise ConfigurationError("a job on Ray is started by `midwatch run -- ray job submit ...`")
    path = Path(argv[3].removeprefix(KEPT))
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"the job's submission cannot be read: {error.strerror}", where=str(path), remedy=again
        ) from error
    if file_name(content) != path.name:
        raise ConfigurationError("the job's submission was changed", where=str(path), remedy=again)
    found = json.loads(content)
    secrets = tuple((name, file) for name, file in found.pop("secrets"))
    packages, logs = tuple(found.pop("packages")), tuple(found.pop("logs"))
    return KeptSubmission(**found, packages=packages, logs=logs, secrets=secrets), path.parent, argv[5:]


def body(spec: StartSpec, submission_id: str, python: str) -> tuple[dict[str, Any], tuple[KeptPackage, ...]]:
    """The request for `POST /api/jobs/`, and the packages that the head must have before it.

    The job gets the variables of `spec` beside those of the person's runtime environment, and ours win.
    """
    submission, folder, words = kept(spec.argv)
    job = spec.environment.get("MIDWATCH_JOB", "")
    fields = dict(submission.fields)
    runtime = dict(fields.get("runtime_env") or {})
    runtime["env_vars"] = {**runtime.get("env_vars", {}), **spec.environment}
    about = {JOB_METADATA: job} | ({SIDECAR_METADATA: "yes"} if submission.sidecar else {})
    if gpus := fields.get("entrypoint_num_gpus"):
        about[GPUS_METADATA] = f"{gpus:g}"
    wanted = {
        **fields,
        "submission_id": submission_id,
        "entrypoint": entrypoint(words, submission, job, python),
        "runtime_env": runtime,
        "metadata": {**(fields.get("metadata") or {}), **about},
    }
    return wanted, tuple(KeptPackage(folder, uri) for uri in submission.packages)


def entrypoint(words: tuple[str, ...], submission: KeptSubmission, job: str, python: str) -> str:
    """The shell line of the driver. `exec` leaves no shell that could die and leave the driver behind."""
    if submission.sidecar:
        logs = [word for path in submission.logs for word in ("--log", path)]
        shim = (*shlex.split(python), "-P", "-m", "midwatch.agents.launch.shim")
        words = (*shim, "--job", job, "--nodes", str(submission.nodes), *logs, "--", *words)
    exports = [f'export {name}="$(cat {shlex.quote(file)})"' for name, file in submission.secrets]
    return "; ".join([*exports, f"exec {shlex.join(words)}"])


def is_variable(name: str) -> bool:
    """Whether a shell takes it as a variable's name."""
    return _NAME.fullmatch(name) is not None
