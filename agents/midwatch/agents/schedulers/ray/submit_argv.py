"""Reads a person's `ray job submit` line as Ray's own client does. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from midwatch.agents.schedulers.ray.states import SUBMISSION_ID
from midwatch.streams.errors import UsageError

_FLAGS = frozenset({"--no-wait", "--verbose", "-v"})
_VALUES = frozenset(
    {
        "--address",
        "--job-id",
        "--submission-id",
        "--runtime-env",
        "--runtime-env-json",
        "--working-dir",
        "--metadata-json",
        "--entrypoint-num-cpus",
        "--entrypoint-num-gpus",
        "--entrypoint-memory",
        "--entrypoint-resources",
        "--entrypoint-label-selector",
        "--verify",
        "--headers",
        "--log-style",
        "--log-color",
    }
)


@dataclass(frozen=True, slots=True)
class SubmitLine:
    """What the line asks for. `runtime_env_file` still has to be read; `working_dir` wins over both."""

    entrypoint: tuple[str, ...]
    address: str = ""
    submission_id: str = ""
    runtime_env_file: str = ""
    runtime_env: Mapping[str, Any] = field(default_factory=dict)
    working_dir: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)


def read_line(argv: tuple[str, ...]) -> SubmitLine:
    """The line after `ray job submit`.

    Raises:
        UsageError: an option that Ray does not have, a value that is none, or no entrypoint.
    """
    given, entrypoint = _options(argv[3:], argv)
    if "--runtime-env" in given and "--runtime-env-json" in given:
        raise _wrong(argv, "--runtime-env and --runtime-env-json exclude each other", "give one of them")
    submission_id = given.get("--submission-id") or given.get("--job-id") or ""
    if submission_id and not SUBMISSION_ID.fullmatch(submission_id):
        raise _wrong(argv, f"{submission_id!r} cannot be a submission id", "use letters, digits, - and _")
    if "--headers" in given:
        raise _wrong(argv, "midwatch sends no headers of a command line", "set ray.token_file instead")
    readers: dict[str, tuple[str, Callable[[str], Any]]] = {
        "--metadata-json": ("metadata", _object),
        "--entrypoint-num-cpus": ("entrypoint_num_cpus", _number),
        "--entrypoint-num-gpus": ("entrypoint_num_gpus", _number),
        "--entrypoint-memory": ("entrypoint_memory", int),
        "--entrypoint-resources": ("entrypoint_resources", _object),
        "--entrypoint-label-selector": ("entrypoint_label_selector", _object),
    }
    fields = {
        name: _read(argv, option, given[option], reader)
        for option, (name, reader) in readers.items()
        if option in given
    }
    return SubmitLine(
        entrypoint=entrypoint,
        address=given.get("--address", ""),
        submission_id=submission_id,
        runtime_env_file=given.get("--runtime-env", ""),
        runtime_env=_read(argv, "--runtime-env-json", given.get("--runtime-env-json", "{}"), _object),
        working_dir=given.get("--working-dir", ""),
        fields=fields,
    )


def _options(words: tuple[str, ...], argv: tuple[str, ...]) -> tuple[dict[str, str], tuple[str, ...]]:
    given: dict[str, str] = {}
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        name, equals, value = words[at].partition("=")
        at += 1
        if name in _FLAGS:
            continue
        if name not in _VALUES:
            raise _wrong(argv, f"`ray job submit` has no option {name}", "see `ray job submit --help`")
        if not equals:
            if at == len(words):
                raise _wrong(argv, f"{name} has no value", "give one")
            value, at = words[at], at + 1
        given[name] = value
    rest = words[at + 1 :] if words[at : at + 1] == ("--",) else words[at:]
    if not rest:
        raise _wrong(argv, "the line has no entrypoint", "put it last: -- python train.py")
    return given, rest


def _read(argv: tuple[str, ...], option: str, text: str, reader: Callable[[str], Any]) -> Any:
    try:
        return reader(text)
    except ValueError as error:
        raise _wrong(argv, f"{option} cannot be read: {error}", "see `ray job submit --help`") from error


def _object(text: str) -> dict[str, Any]:
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("it is no JSON object")
    return found


def _number(text: str) -> float | int:
    return float(text) if "." in text else int(text)


def _wrong(argv: tuple[str, ...], what: str, remedy: str) -> UsageError:
    return UsageError(what, where=" ".join(argv), remedy=remedy)
