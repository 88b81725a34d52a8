"""Turns a person's sbatch line into one that runs their script under the shim. Shell: keeps two scripts.

Options and #SBATCH lines stay as they are. Like sbatch itself it copies the script: a later edit does not
change what a restart runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from midwatch.agents.schedulers.slurm.sbatch_argv import Option, split
from midwatch.agents.schedulers.wrapping import file_name, wrapped_script
from midwatch.streams.errors import UsageError
from midwatch.streams.host.atomic_file import create_if_absent

_ARRAY = re.compile(rb"^#SBATCH\s+(?:--array|-a)", re.MULTILINE)
_AS_OPTIONS = {
    "SBATCH_ACCOUNT": "account",
    "SBATCH_PARTITION": "partition",
    "SBATCH_QOS": "qos",
    "SBATCH_RESERVATION": "reservation",
    "SBATCH_TIMELIMIT": "time",
    "SBATCH_CONSTRAINT": "constraint",
}
_SHORT = {"A": "account", "p": "partition", "q": "qos", "t": "time", "C": "constraint"}
_DROPPED = frozenset({"parsable", "quiet", "wait", "wrap"})


def kept_submission(
    argv: tuple[str, ...],
    *,
    cwd: Path,
    scripts: Path,
    environment: Mapping[str, str],
    job: str,
    nodes: int,
    log_paths: tuple[str, ...],
    node_logs: tuple[str, ...] = (),
) -> tuple[str, ...]:
    """The argv that submits the same job under the shim; both scripts are below `scripts`, named by content.

    `environment` is the person's own. Its SBATCH_* variables that choose where a job runs become options:
    the executor submits the next start and does not have them.

    Raises:
        UsageError: the line names no script, the file is no script, or the job is an array.
    """
    options, rest = split(argv[1:])
    _refuse_what_is_not_one_job(options, argv)
    content, script_arguments = _content(options, rest, cwd, argv)
    if _ARRAY.search(content):
        raise _array(argv)
    inner = keep(scripts, content)
    wrapped = wrapped_script(
        content, inner=inner, job=job, nodes=nodes, log_paths=log_paths, node_logs=node_logs
    )
    outer = keep(scripts, wrapped)
    named = {_SHORT.get(option.name, option.name) for option in options}
    added = [
        f"--{option}={environment[name]}"
        for name, option in _AS_OPTIONS.items()
        if environment.get(name) and option not in named
    ]
    kept_words = [word for option in options if option.name not in _DROPPED for word in option.words]
    if "job-name" not in named and "J" not in named and rest:
        added.append(f"--job-name={Path(rest[0]).name}")
    return (argv[0], *kept_words, *added, str(outer), *script_arguments)


def keep(scripts: Path, content: bytes) -> Path:
    """Writes a script under the name of its content, so the same content twice is one file."""
    scripts.mkdir(parents=True, exist_ok=True)
    path = scripts.resolve() / file_name(content)
    if not path.exists() and create_if_absent(path, content, mode=0o755):
        path.chmod(0o755)  # whatever the person's umask is, the executor must be able to read the script
    return path


def _content(
    options: list[Option], rest: list[str], cwd: Path, argv: tuple[str, ...]
) -> tuple[bytes, list[str]]:
    wrap = next((option.value for option in options if option.name == "wrap"), None)
    if wrap is not None:
        return f"#!/bin/sh\n{wrap}\n".encode(), []
    if not rest:
        raise UsageError(
            "this sbatch line has no script",
            where=" ".join(argv),
            remedy="write the script to a file: midwatch run -- sbatch [options] train.sh",
        )
    path = cwd / rest[0]
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"the script cannot be read: {error.strerror}", where=str(path), remedy="check the path"
        ) from error
    if not content.startswith(b"#!"):
        raise UsageError(
            "sbatch takes only scripts whose first line names an interpreter",
            where=str(path),
            remedy="begin it with #!/bin/bash",
        )
    return content, rest[1:]


def _refuse_what_is_not_one_job(options: list[Option], argv: tuple[str, ...]) -> None:
    for option in options:
        if option.name == "array":
            raise _array(argv)
        if option.name in ("test-only", "help", "usage", "version", "h", "V"):
            raise UsageError("this sbatch line submits nothing", where=" ".join(argv))


def _array(argv: tuple[str, ...]) -> UsageError:
    return UsageError(
        "each task of an array is a job of its own",
        where=" ".join(argv),
        remedy="submit each task by a `midwatch run` of its own, for example in a loop",
    )
