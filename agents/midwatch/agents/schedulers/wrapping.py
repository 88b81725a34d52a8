"""Wraps the person's command in our shim, so that a cluster starts it. Pure but for one file read.

On `local` the shim stands before the person's argv. On SLURM it stands in a script that `midwatch run` made
from the person's script. Its name is the hash of its content, so the signed spec vouches for the content too.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from types import MappingProxyType

from midwatch.agents.schedulers.base import StartSpec
from midwatch.agents.schedulers.environment_file import kept_environment
from midwatch.agents.schedulers.ray.submission import is_ray
from midwatch.agents.schedulers.resume import (
    SHOWN,
    TRACE,
    ResumePoint,
    filled,
    variables,
    variables_to_choose,
)
from midwatch.agents.schedulers.slurm.exported import for_file, for_steps
from midwatch.agents.schedulers.slurm.job_array import of_whole_array
from midwatch.agents.schedulers.slurm.sbatch_argv import Option, split
from midwatch.streams.errors import ConfigurationError, UsageError
from midwatch.streams.records import Spec

SHIM = ("-P", "-m", "midwatch.agents.launch.shim")
SUFFIX = ".sh"

_KEPT = re.compile(r"[0-9a-f]{64}\.sh")


def shim_argv(
    *,
    job: str,
    nodes: int,
    log_paths: tuple[str, ...],
    argv: tuple[str, ...],
    node_logs: tuple[str, ...] = (),
) -> list[str]:
    """The person's argv under the shim; `job` is the whole name, or `cluster:user` for the native id."""
    logs = [word for path in log_paths for word in ("--log", path)]
    logs += [word for path in node_logs for word in ("--node-log", path)]
    return [sys.executable, *SHIM, "--job", job, "--nodes", str(nodes), *logs, "--", *argv]


def start_spec(
    spec: Spec,
    *,
    attempt: int,
    resume: ResumePoint | None = None,
    chooses: bool = False,
    exclude_nodes: str = "",
    trace: str = "",
) -> StartSpec:
    """The start that this spec describes, as the job's `attempt`. It is told to load `resume`, if given.

    `chooses`: the start may wait in a queue, so its shim chooses the checkpoint when it begins. `trace`: the
    `traceparent` of the span that its own spans hang under.

    Raises:
        ConfigurationError: the script or the environment is gone, or was changed after it was signed.
    """
    arguments = filled(spec.resume_arguments, resume) if resume else ()
    argv, export = (*spec.argv, *arguments), None
    kept = environment_of(spec)
    if is_sbatch(argv):
        export = export_of(argv, verified_script(script_of(argv)))
    elif not is_ray(argv):  # Ray's driver puts the shim before the entrypoint, where the job asked for it
        argv = tuple(shim_argv(job=spec.job, nodes=spec.nodes, log_paths=spec.log_paths, argv=argv))
    shown = (*SHOWN, TRACE) if trace else SHOWN
    if chooses:
        resume_variables = variables_to_choose(attempt, spec.checkpoint_directory, spec.resume_arguments)
    else:
        resume_variables = variables(attempt, resume, arguments)
    if trace:
        resume_variables[TRACE] = trace
    # Where a spec replaces one of an earlier midwatch, sbatch gets the variables as it did then.
    by_file = bool(spec.environment_file) and not spec.replaces and is_sbatch(argv)
    if by_file:
        kept, export = for_file(for_steps(kept, shown), of_whole_array(argv)), None
    return StartSpec(
        argv=argv,
        cwd=spec.cwd,
        environment={**kept, "MIDWATCH_JOB": spec.job, **resume_variables},
        user=spec.user,
        exclude_nodes=exclude_nodes,
        export=",".join([*export, *dict.fromkeys((*resume_variables, *shown))]) if export is not None else "",
        by_file=by_file,
    )


def environment_of(spec: Spec) -> dict[str, str]:
    """The variables that every start of the job gets. A spec of an earlier midwatch holds them itself.

    Raises:
        ConfigurationError: the file that holds them is gone, was changed, or is not the user's alone.
    """
    if not spec.environment_file:
        return dict(spec.environment)
    return {**spec.environment, **kept_environment(Path(spec.environment_file), spec.user)}


def export_of(argv: tuple[str, ...], script: bytes) -> tuple[str, ...] | None:
    """The variables to which `--export` limits the job's environment; None where ours need not be named.

    The option stands on the line or in a line of the script. ALL lets every variable pass. NONE names none,
    and like any list it lets SLURM load the user's own environment. NIL would not, so it stays as it is.
    """
    for options in (split(argv[1:])[0], script_options(script)):
        given = [option.value or "" for option in options if option.name == "export"]
        if given:
            names = given[-1].split(",")
            if {"ALL", "NIL"} & {name.upper() for name in names}:
                return None
            return tuple(name for name in names if name.upper() != "NONE")
    return None


def given_name(
    options: Sequence[Option],
    in_script: Sequence[Option],
    environment: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """The name that the line, else a variable, else the script gives the job; "" if none does."""
    of_line, of_script = (
        [option.value for option in given if option.name in ("job-name", "J")]
        for given in (options, in_script)
    )
    found = [values[-1] for values in (of_line, [environment.get("SBATCH_JOB_NAME")], of_script) if values]
    return next(filter(None, found), "")


def is_sbatch(argv: tuple[str, ...]) -> bool:
    """Whether the command line submits to SLURM."""
    return bool(argv) and PurePath(argv[0]).name == "sbatch"


def script_of(argv: tuple[str, ...]) -> Path:
    """The script of an sbatch line. Raises UsageError if it has none."""
    _, rest = split(argv[1:])
    if not rest:
        raise UsageError(
            "this sbatch line has no script",
            where=" ".join(argv),
            remedy="write the script to a file: midwatch run -- sbatch [options] train.sh",
        )
    return Path(rest[0])


def partitions_of(argv: tuple[str, ...], script: bytes) -> tuple[str, ...]:
    """The SLURM partitions of a submission, by its options or else its #SBATCH lines; maybe none."""
    for options in (split(argv[1:])[0], script_options(script)):
        named = [option.value for option in options if option.name in ("partition", "p")]
        if named:
            return tuple((named[-1] or "").split(","))
    return ()


def script_options(script: bytes) -> list[Option]:
    """The options in the #SBATCH lines of a script."""
    words = [word for line in _head(script) if line.startswith(b"#SBATCH") for word in _sbatch_words(line)]
    return split(words)[0]


def _sbatch_words(line: bytes) -> list[str]:
    text = line.decode(errors="replace").partition(" #")[0].removeprefix("#SBATCH")
    try:
        return shlex.split(text)
    except ValueError:  # an open quotation mark, at which sbatch itself gives up
        return text.split()


def wrapped_script(
    content: bytes,
    *,
    inner: Path,
    job: str,
    nodes: int,
    log_paths: tuple[str, ...],
    node_logs: tuple[str, ...] = (),
) -> bytes:
    """A script with the same interpreter line and #SBATCH lines that runs `inner` under the shim."""
    words = shim_argv(job=job, nodes=nodes, log_paths=log_paths, node_logs=node_logs, argv=(str(inner),))
    kept = [line for line in _head(content) if line.startswith((b"#SBATCH", b"#PBS", b"#BSUB"))]
    call = " ".join(_quoted(word) for word in words)
    return b"\n".join([b"#!/bin/sh", *kept, f'exec {call} "$@"\n'.encode()])


def _head(content: bytes) -> list[bytes]:
    """The lines in which sbatch looks for its options: all before the first that is no comment."""
    head = []
    for line in content.splitlines()[1:]:
        if line.strip() and not line.startswith(b"#"):
            break
        head.append(line)
    return head


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def file_name(content: bytes) -> str:
    """The file name of a kept script: the hash of its content."""
    return hashlib.sha256(content).hexdigest() + SUFFIX


def is_kept(path: Path) -> bool:
    """Whether the path has the name of a kept script."""
    return _KEPT.fullmatch(path.name) is not None


def verified_script(path: Path) -> bytes:
    """The content of a kept script.

    Raises:
        ConfigurationError: the script is gone, or its content does not fit its name.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"the job's script cannot be read: {error.strerror}",
            where=str(path),
            remedy="start the job with `midwatch run` again, which stores its script",
        ) from error
    if file_name(content) != path.name:
        raise ConfigurationError(
            "the job's script was changed after it was signed",
            where=str(path),
            remedy="start the job with `midwatch run` again",
        )
    return content
