"""Keeps what a `ray job submit` line asks for, so that a restart submits the same again. Shell.

Directories become packages, as Ray's own client makes them. The kept files are for their owner alone: the
runtime environment may hold secrets, and they never reach Kafka.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from midwatch.agents.schedulers.ray.packages import keep_content, keep_package
from midwatch.agents.schedulers.ray.submission import KeptSubmission, file_name, is_variable, kept_argv
from midwatch.agents.schedulers.ray.submit_argv import SubmitLine, read_line
from midwatch.streams.errors import UsageError
from midwatch.streams.host.atomic_file import create_if_absent

_REMOTE = re.compile(r"[a-z0-9]+://", re.IGNORECASE)
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class EntrypointSidecar:
    """What the sidecar in the entrypoint follows beside the driver's output."""

    logs: tuple[str, ...] = ()
    nodes: int = 1


@dataclass(frozen=True, slots=True)
class RaySubmission:
    """A kept submission: the argv of its spec, the id of its first start, and warnings for the person."""

    argv: tuple[str, ...]
    submission_id: str
    warnings: tuple[str, ...] = ()


def keep_ray_submission(
    argv: tuple[str, ...],
    *,
    cwd: Path,
    folder: Path,
    address: str,
    environment: Mapping[str, str],
    secret_files: Sequence[str] = (),
    sidecar: EntrypointSidecar | None = None,
) -> RaySubmission:
    """Keeps the submission of this line below `folder`. `address`: that of the settings.

    Raises:
        UsageError: the line makes no sense, or names another head than the settings.
    """
    line = read_line(argv)
    _check_address(line.address or environment.get("RAY_API_SERVER_ADDRESS", ""), address)
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    runtime = _runtime_env(line, cwd)
    packages = _pack(runtime, folder, cwd)
    kept = KeptSubmission(
        fields={**line.fields, "runtime_env": runtime},
        packages=packages,
        secrets=tuple(_secret(text) for text in secret_files),
        sidecar=sidecar is not None,
        logs=sidecar.logs if sidecar else (),
        nodes=sidecar.nodes if sidecar else 1,
    )
    content = kept.content()
    path = folder / file_name(content)
    create_if_absent(path, content, mode=0o600)
    submission_id = line.submission_id or f"raysubmit_{secrets.token_hex(8)}"
    return RaySubmission(
        kept_argv(path, line.entrypoint), submission_id, tuple(_open_secrets(runtime.get("env_vars") or {}))
    )


def _check_address(named: str, address: str) -> None:
    if not address:
        raise UsageError(
            "the settings name no Ray head, and midwatch acts on no other",
            where="ray.address",
            remedy=f"set it: ray: {{address: {named or 'http://head:8265'}}}",
        )
    if named and named.rstrip("/") != address:
        raise UsageError(
            f"the line names another head than the settings, which name {address}",
            where=f"--address {named}",
            remedy="leave --address out, or change ray.address",
        )


def _runtime_env(line: SubmitLine, cwd: Path) -> dict[str, Any]:
    runtime: dict[str, Any] = dict(line.runtime_env)
    if line.runtime_env_file:
        path = cwd / line.runtime_env_file
        try:
            runtime = yaml.safe_load(path.read_text()) or {}
        except (OSError, yaml.YAMLError) as error:
            raise UsageError(f"it cannot be read: {error}", where=str(path), remedy="check it") from error
        if not isinstance(runtime, dict):
            raise UsageError("it is no mapping", where=str(path), remedy="see Ray's runtime environments")
    if line.working_dir:
        runtime["working_dir"] = line.working_dir
    return runtime


def _pack(runtime: dict[str, Any], folder: Path, cwd: Path) -> tuple[str, ...]:
    """Packs the directories that the runtime environment names, and names the packages in their place."""
    excludes = tuple(runtime.get("excludes") or ())
    packages = []
    working_dir = runtime.get("working_dir")
    if working_dir and not _REMOTE.match(working_dir):
        path = cwd / os.path.expanduser(working_dir)
        packed = keep_content(folder, path.read_bytes()) if _is_archive(path) else None
        runtime["working_dir"] = packed or keep_package(folder, path, excludes)
        packages.append(runtime["working_dir"])
    modules = []
    for module in runtime.get("py_modules") or ():
        if not isinstance(module, str) or _REMOTE.match(module):
            modules.append(module)
            continue
        path = cwd / os.path.expanduser(module)
        if not path.is_dir():
            raise UsageError(
                "only a directory can be one of py_modules here",
                where=str(path),
                remedy="name the directory of the package, or an address of its wheel",
            )
        modules.append(keep_package(folder, path, excludes, inside=True))
        packages.append(modules[-1])
    if modules:
        runtime["py_modules"] = modules
    return tuple(packages)


def _is_archive(path: Path) -> bool:
    return path.is_file() and path.suffix == ".zip"


def _secret(text: str) -> tuple[str, str]:
    name, equals, file = text.partition("=")
    if not equals or not is_variable(name) or not file.startswith("/"):
        raise UsageError(
            f"{text!r} is not NAME=FILE",
            where="--secret",
            remedy="name the variable and the whole path of its file on the cluster: HF_TOKEN=/secrets/hf",
        )
    return name, file


def _open_secrets(variables: Mapping[str, object]) -> Iterable[str]:
    for name in variables:
        if _SECRET.search(name) and not name.endswith("_FILE"):
            yield (
                f"Ray's API and dashboard show the value of {name} to everybody who can read them; "
                f"--secret {name}=FILE sends only the path of a file on the cluster"
            )
