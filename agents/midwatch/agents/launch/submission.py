"""Turns a person's sbatch line into one that runs their script under the shim. Shell: keeps two scripts.

Options and #SBATCH lines stay as they are. Like sbatch itself it copies the script: a later edit does not
change what a restart runs.
"""

from __future__ import annotations

import contextlib
import os
import resource
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from midwatch.agents.launch.variables import OF_ONE_START
from midwatch.agents.schedulers.slurm import exported
from midwatch.agents.schedulers.slurm.job_array import TASK, array_given, indices
from midwatch.agents.schedulers.slurm.sbatch_argv import Option, split
from midwatch.agents.schedulers.wrapping import file_name, given_name, script_options, wrapped_script
from midwatch.streams.errors import UsageError
from midwatch.streams.host.atomic_file import create_if_absent

_OWNERS = stat.S_IRWXU

_AS_OPTIONS = {
    "SBATCH_ACCOUNT": "account",
    "SBATCH_ACCTG_FREQ": "acctg-freq",
    "SBATCH_BATCH": "batch",
    "SBATCH_CONSTRAINT": "constraint",
    "SBATCH_CONTAINER": "container",
    "SBATCH_CORE_SPEC": "core-spec",
    "SBATCH_CPUS_PER_GPU": "cpus-per-gpu",
    "SBATCH_DELAY_BOOT": "delay-boot",
    "SBATCH_DISTRIBUTION": "distribution",
    "SBATCH_ERROR": "error",
    "SBATCH_GPUS": "gpus",
    "SBATCH_GPUS_PER_NODE": "gpus-per-node",
    "SBATCH_GPUS_PER_SOCKET": "gpus-per-socket",
    "SBATCH_GPUS_PER_TASK": "gpus-per-task",
    "SBATCH_GPU_BIND": "gpu-bind",
    "SBATCH_GPU_FREQ": "gpu-freq",
    "SBATCH_GRES": "gres",
    "SBATCH_GRES_FLAGS": "gres-flags",
    "SBATCH_HINT": "hint",
    "SBATCH_INPUT": "input",
    "SBATCH_JOB_NAME": "job-name",
    "SBATCH_MEM_BIND": "mem-bind",
    "SBATCH_MEM_PER_CPU": "mem-per-cpu",
    "SBATCH_MEM_PER_GPU": "mem-per-gpu",
    "SBATCH_MEM_PER_NODE": "mem",
    "SBATCH_NETWORK": "network",
    "SBATCH_OPEN_MODE": "open-mode",
    "SBATCH_OUTPUT": "output",
    "SBATCH_PARTITION": "partition",
    "SBATCH_PROFILE": "profile",
    "SBATCH_QOS": "qos",
    "SBATCH_RESERVATION": "reservation",
    "SBATCH_SIGNAL": "signal",
    "SBATCH_THREADS_PER_CORE": "threads-per-core",
    "SBATCH_THREAD_SPEC": "thread-spec",
    "SBATCH_TIMELIMIT": "time",
    "SBATCH_WAIT_ALL_NODES": "wait-all-nodes",
    "SBATCH_WCKEY": "wckey",
}
"""Where sbatch takes an option from its environment, and the option. An option on the line outweighs it."""

_FLAGS = {
    "SBATCH_EXCLUSIVE": "exclusive",
    "SBATCH_NO_KILL": "no-kill",
    "SBATCH_NO_REQUEUE": "no-requeue",
    "SBATCH_OVERCOMMIT": "overcommit",
    "SBATCH_REQUEUE": "requeue",
    "SBATCH_SPREAD_JOB": "spread-job",
    "SBATCH_USE_MIN_NODES": "use-min-nodes",
}
_SHORT = {
    "A": "account",
    "C": "constraint",
    "G": "gpus",
    "J": "job-name",
    "O": "overcommit",
    "S": "core-spec",
    "e": "error",
    "i": "input",
    "k": "no-kill",
    "m": "distribution",
    "o": "output",
    "p": "partition",
    "q": "qos",
    "t": "time",
}
_DROPPED = frozenset({"parsable", "quiet", "wait", "wrap", "export", "export-file", "array"})
_FILE_SIZE = 16 * 1024 * 1024
_LIMITS = ("CPU", "FSIZE", "DATA", "STACK", "CORE", "RSS", "NPROC", "NOFILE", "MEMLOCK", "AS")
_NOT_SENT = OF_ONE_START | {
    "SBATCH_WAIT",
    # Of the job in which a person may type the line. The shim would take them for those of the new job.
    "SLURM_RESTART_COUNT",
    "SLURM_ARRAY_JOB_ID",
    *(f"SLURM_ARRAY_TASK_{name}" for name in ("COUNT", "ID", "MAX", "MIN", "STEP")),
}


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

    `environment` is the person's own. Its SBATCH_* variables become options: the executor submits the next
    start and does not have them. The options about the environment are left out: their values may be secret.

    Raises:
        UsageError: the line names no script, or the file is no script.
    """
    options, rest = split(argv[1:])
    _refuse_what_submits_nothing(options, argv)
    content, script_arguments = _content(options, rest, cwd, argv)
    array = array_given(options, environment, script_options(content))
    job = f"{job}_{TASK}" if array and "/" in job else job
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
    added += [f"--{option}" for name, option in _FLAGS.items() if name in environment and option not in named]
    kept_words = [word for option in options if option.name not in _DROPPED for word in option.words]
    if not _job_is_named(named, environment, content):
        added.append(f"--job-name={Path(rest[0]).name if rest else 'wrap'}")
    if array:
        added.append(f"--array={array}")
    return (argv[0], *kept_words, *added, str(outer), *script_arguments)


@dataclass(frozen=True, slots=True)
class Sending:
    """What sbatch sends with a job. `words`: options of the first start that the spec must not hold.

    `environment`: of that sbatch. `kept`: what the job gets, for its later starts. `by_file`: sbatch itself
    is to take it from a file.
    """

    words: tuple[str, ...]
    environment: Mapping[str, str]
    kept: Mapping[str, str]
    by_file: bool = False


def sending(
    argv: tuple[str, ...],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    ours: Mapping[str, str],
    by_name: tuple[str, ...] = (),
) -> Sending:
    """What sbatch sends with the job of this line. `ours`: variables that the job needs for its watch.

    `environment` is the person's own. `by_name`: variables that the job gets whatever `--export` says.

    Raises:
        UsageError: the file of `--export-file` cannot be read.
    """
    options, rest = split(argv[1:])
    in_script = script_options(_content(options, rest, cwd, argv)[0])
    export = exported.export_given(options, environment, in_script)
    source = {name: value for name, value in environment.items() if name not in _NOT_SENT} | dict(ours)
    limits = _limits([*in_script, *options])
    by_default = Path(rest[0]).name if rest and not any(o.name == "wrap" for o in options) else "wrap"
    named = {exported.JOB_NAME: given_name(options, in_script, environment) or by_default}
    files = [option.value for option in (*in_script, *options) if option.name == "export-file"]
    if files and (export or "").upper() not in ("NONE", "NIL"):
        kept = {**_read_variables(cwd / str(files[-1])), **ours, **named, **limits}
        return Sending(("--export=ALL",), source, kept, by_file=True)
    if export is None or not exported.restricts(export):
        words = [word for option in options if option.name == "export" for word in option.words]
        return Sending(tuple(words), source, {**source, **named, **limits})
    by_request = {name: environment[name] for name in by_name if name in environment}
    kept = {**exported.sent(source, export), **ours, **by_request, **named, **limits}
    # By file, because a value may stand in the option itself, and others can read a command line.
    return Sending(("--export=ALL",), source, exported.for_file(kept), by_file=True)


def _read_variables(path: Path) -> dict[str, str]:
    """The variables of a person's `--export-file`."""
    try:
        with path.open("rb") as file:
            entries = os.fsdecode(file.read(_FILE_SIZE)).split("\0")
    except OSError as error:
        raise UsageError(
            f"the file of variables cannot be read: {error.strerror}",
            where=f"--export-file={path}",
            remedy="check the path; a number of an open file cannot be given here",
        ) from error
    pairs = [entry.partition("=") for entry in entries]
    return {name: value for name, equals, value in pairs if equals and name not in exported.LEFT_OUT}


def _limits(options: Sequence[Option]) -> dict[str, str]:
    """The umask and limits of this process, as sbatch sends them. An `--export-file` lacks them otherwise."""
    values = [option.value or "ALL" for option in options if option.name == "propagate"]
    by_option = set(values[-1].upper().split(",")) if values else set()
    limits = {exported.UMASK: f"{_umask():04o}"}
    for name in _LIMITS:
        soft, _ = resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))
        mark = "U" if by_option & {"ALL", name} else ""
        limits[f"SLURM_RLIMIT_{name}"] = f"{mark}{soft % 2**64}"
    return limits


def _umask() -> int:
    """The umask of this process, without a moment in which it is another."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("Umask:")[2].split()[0], 8)


def _job_is_named(named: set[str], environment: Mapping[str, str], content: bytes) -> bool:
    """Whether the line, the environment or the script names the job; else sbatch takes the script's name."""
    in_script = {option.name for option in script_options(content)}
    return (
        "job-name" in named or bool(environment.get("SBATCH_JOB_NAME")) or bool({"job-name", "J"} & in_script)
    )


def tasks_of(argv: tuple[str, ...], cwd: Path, environment: Mapping[str, str]) -> tuple[int, ...]:
    """The indices of the array that sbatch makes of this line; empty for a job that is no array.

    Raises:
        UsageError: the line names no script, or its `--array` names no tasks.
    """
    options, rest = split(argv[1:])
    array = array_given(options, environment, script_options(_content(options, rest, cwd, argv)[0]))
    return indices(array) if array else ()


def keep(scripts: Path, content: bytes) -> Path:
    """Writes a script under the name of its content, so the same content twice is one file.

    Only its owner can read it: a line `#SBATCH --export=NAME=VALUE` may hold a secret.
    """
    scripts.mkdir(parents=True, exist_ok=True)
    path = scripts.resolve() / file_name(content)
    if not path.exists():
        create_if_absent(path, content, mode=_OWNERS)
    if stat.S_IMODE(path.stat().st_mode) != _OWNERS:  # a umask, or an earlier midwatch
        with contextlib.suppress(PermissionError):  # another person's, in a state directory of several
            path.chmod(_OWNERS)
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


def _refuse_what_submits_nothing(options: list[Option], argv: tuple[str, ...]) -> None:
    for option in options:
        if option.name in ("test-only", "help", "usage", "version", "h", "V"):
            raise UsageError("this sbatch line submits nothing", where=" ".join(argv))
