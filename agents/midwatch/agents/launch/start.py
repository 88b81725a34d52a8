"""`midwatch run`: signs and publishes a job's spec, starts the job, and publishes its incarnation. Shell."""

from __future__ import annotations

import getpass
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from midwatch.agents.launch.first_start import NotStarted, check_absent, scheduler_of, submit_first
from midwatch.agents.launch.ray_submission import EntrypointSidecar, keep_ray_submission
from midwatch.agents.launch.submission import kept_submission
from midwatch.agents.launch.variables import allowed
from midwatch.agents.reporter import Reporter
from midwatch.agents.schedulers import cluster as cluster_of
from midwatch.agents.schedulers.base import Cluster, StartSpec
from midwatch.agents.schedulers.calls import Caller, environment
from midwatch.agents.schedulers.local.effect_file import read
from midwatch.agents.schedulers.local.scheduler import LocalCluster
from midwatch.agents.schedulers.ray.states import ANY_SESSION
from midwatch.agents.schedulers.ray.submission import is_ray
from midwatch.agents.schedulers.wrapping import is_sbatch, shim_argv
from midwatch.agents.signing import ensure_keys, spec_hash
from midwatch.agents.watcher.cancellation_notes import note_cancellation
from midwatch.streams.errors import ServiceUnreachable, UsageError
from midwatch.streams.records import Spec, SpecEvent
from midwatch.streams.records.identity import job_name, local_incarnation, native_id, slurm_incarnation
from midwatch.streams.services.reachable import check_kafka
from midwatch.streams.settings.schema import Settings

_SUBMIT_S = 60.0
_LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One request of a person. `limits` are seconds by phase; paths may be relative to `cwd`."""

    argv: tuple[str, ...]
    cwd: Path
    job: str = ""
    log_paths: tuple[str, ...] = ()
    node_logs: tuple[str, ...] = ()  # on every node of a SLURM job; `%N` is the node's name
    checkpoint_directory: str = ""
    resume_arguments: tuple[str, ...] = ()  # a template of words for a start that has a checkpoint
    policy: str = ""
    policy_text: str = ""  # where the job brings a policy of its own
    any_line: bool = False  # any line of the job ends its silence
    armed: bool = False
    nodes: int = 1
    limits: Mapping[str, float] | None = None
    max_restarts: int | None = None
    variables: tuple[str, ...] = ()  # names from our environment
    scheduler: str = ""  # a foreign one, by its name; "" for the one that the command line shows
    secrets: tuple[str, ...] = ()  # on Ray: NAME=FILE, a file on the cluster
    sidecar: bool = False  # on Ray: a shipper inside the entrypoint
    settings: Mapping[str, str] | None = None  # MIDWATCH_* variables that give our settings to the shipper


@dataclass(frozen=True, slots=True)
class Started:
    """A job that runs or waits in the queue. `key` names its record on `local`, `log` its output there."""

    spec: Spec
    incarnation: str
    key: str = ""
    log: Path | None = None
    warnings: tuple[str, ...] = ()


def start(request: RunRequest, settings: Settings, caller: Caller) -> Started:
    """Starts the job once and publishes its spec.

    A job with a name has its spec published before the start. A job without one gets its native id as name.

    Raises:
        UsageError: the command line makes no sense.
        NotStarted: the scheduler or the machine refused.
        ServiceUnreachable: Kafka does not take the spec, or SLURM does not answer. Unless the message says
            otherwise, no job was started.
    """
    if is_ray(request.argv):
        return _start_on_ray(request, settings, caller)
    elsewhere = None
    if request.scheduler:
        elsewhere = scheduler_of(request.scheduler, settings.extensions, settings.state_directory, caller)
    check_kafka(settings)
    reporter = Reporter(settings)
    try:
        signer = ensure_keys(settings.state_directory)
        kind = request.scheduler or ("slurm" if is_sbatch(request.argv) else "local")
        owner = _owner(settings, kind)
        name = _name(request.job, owner) if request.job else ""
        spec = _spec(request, settings, kind, name or ":".join(owner))
        if name:
            spec = signer.sign(spec)
            reporter.spec(spec)
        if elsewhere is not None:
            started = _submit_elsewhere(spec, elsewhere)
        else:
            started = _submit(spec, caller) if kind == "slurm" else _spawn(spec, settings, caller)
        if not name:
            named = replace(spec, job=f"{spec.job}/{native_id(started.incarnation)}")
            started = replace(started, spec=signer.sign(named))
            reporter.spec(started.spec)
        event = spec_event(started.spec, started.incarnation)
        reporter.event(replace(event, policy_text=request.policy_text, any_line=request.any_line))
        return started
    finally:
        reporter.close()


def _start_on_ray(request: RunRequest, settings: Settings, caller: Caller) -> Started:
    """Starts a job on the settings' Ray head. Its submission id is known before, so its name is too."""
    sidecar = EntrypointSidecar(tuple(str(request.cwd / path) for path in request.log_paths), request.nodes)
    kept = keep_ray_submission(
        request.argv,
        cwd=request.cwd,
        folder=settings.state_directory / "submissions",
        address=settings.ray.address,
        environment=os.environ,
        secret_files=request.secrets,
        sidecar=sidecar if request.sidecar or request.log_paths else None,
    )
    head = cluster_of("ray", "ray", settings.state_directory, caller, settings.ray)
    check_absent(head, f"ray:{kept.submission_id}:{ANY_SESSION}")
    check_kafka(settings)
    reporter = Reporter(settings)
    try:
        signer = ensure_keys(settings.state_directory)
        name = _name(request.job or kept.submission_id, _owner(settings, "ray"))
        spec = signer.sign(_spec(replace(request, argv=kept.argv), settings, "ray", name))
        reporter.spec(spec)
        wanted = StartSpec(spec.argv, spec.cwd, {**spec.environment, "MIDWATCH_JOB": spec.job}, spec.user)
        incarnation = submit_first(head, wanted, kept.submission_id)
        event = spec_event(spec, incarnation)
        reporter.event(replace(event, policy_text=request.policy_text, any_line=request.any_line))
        return Started(spec, incarnation, warnings=kept.warnings)
    finally:
        reporter.close()


def spec_event(spec: Spec, incarnation: str) -> SpecEvent:
    """The event that gives detect and decide what they need of a spec."""
    return SpecEvent(
        job=spec.job,
        spec=spec_hash(spec),
        policy=spec.policy,
        armed=spec.armed,
        nodes=spec.nodes,
        checkpoint_directory=spec.checkpoint_directory,
        limits=spec.limits,
        max_restarts=spec.max_restarts,
        incarnation=incarnation,
    )


def note_interrupts() -> list[int]:
    """Collects every later Ctrl-C in the returned list, for `follow` to act on.

    Call it before the start: a Ctrl-C between start and `follow` would leave a job that nobody follows.
    """
    pressed: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    return pressed


def follow(started: Started, settings: Settings, caller: Caller, pressed: list[int]) -> int:
    """Shows a local job's output until it ends; returns its exit code. Ctrl-C ends the job, twice kills."""
    cluster = LocalCluster("local", settings.state_directory, caller)
    acted = 0
    with open(started.log or os.devnull, "rb") as log:
        while True:
            record = read(settings.state_directory, started.key)
            sys.stdout.buffer.write(log.read())
            sys.stdout.buffer.flush()
            if record is not None and record.code is not None:
                return 128 - record.code if record.code < 0 else record.code
            if cluster.state(started.incarnation).over:
                return 1  # the shim was killed, so the exit code is unknown
            if len(pressed) > acted:
                note_cancellation(settings.state_directory, started.incarnation, getpass.getuser())
                cluster.cancel(started.incarnation, force=acted > 0)
                acted = len(pressed)
            time.sleep(_LOOK_S)


def _owner(settings: Settings, kind: str) -> tuple[str, str]:
    """Cluster and user: the first two parts of the job's name. An unnamed cluster has its kind as name."""
    unset = settings.cluster == Settings().cluster
    return kind if unset else settings.cluster, getpass.getuser()


def _name(text: str, owner: tuple[str, str]) -> str:
    """The job's whole name. Raises UsageError for another user's: the executor would refuse its commands."""
    name = job_name(text, cluster=owner[0], user=owner[1])
    if name.user != owner[1]:
        raise UsageError(
            f"{name} is a job of {name.user}, and you are {owner[1]}",
            where="--job",
            remedy=f"leave the user out: --job {name.run}",
        )
    return str(name)


def _spec(request: RunRequest, settings: Settings, kind: str, job: str) -> Spec:
    logs = tuple(str(request.cwd / path) for path in request.log_paths)
    node_logs = tuple(str(request.cwd / path) for path in request.node_logs)
    variables = allowed(os.environ, request.variables) | dict(request.settings or {})
    variables["MIDWATCH_STATE_DIRECTORY"] = str(settings.state_directory.absolute())
    if kind == "ray" and not (request.sidecar or request.log_paths):
        # Ray's client sends none of the shell's variables, and its API shows those of a job to everybody.
        variables = {name: os.environ[name] for name in request.variables if name in os.environ}
    argv = request.argv
    if kind == "slurm":
        argv = kept_submission(
            argv,
            cwd=request.cwd,
            scripts=settings.state_directory / "scripts",
            environment=os.environ,
            job=job,
            nodes=request.nodes,
            log_paths=logs,
            node_logs=node_logs,
        )
    else:
        logs += tuple(path.replace("%N", socket.gethostname()) for path in node_logs)
    return Spec(
        job=job,
        cluster=kind,
        argv=argv,
        cwd=str(request.cwd),
        environment=variables,
        user=getpass.getuser(),
        log_paths=logs,
        checkpoint_directory=str(request.cwd / request.checkpoint_directory)
        if request.checkpoint_directory
        else "",
        policy=request.policy or settings.policy,
        armed=request.armed,
        nodes=request.nodes,
        limits={name: float(seconds) for name, seconds in (request.limits or {}).items()},
        max_restarts=request.max_restarts,
        resume_arguments=request.resume_arguments,
    )


def _spawn(spec: Spec, settings: Settings, caller: Caller) -> Started:
    cluster = LocalCluster("local", settings.state_directory, caller)
    key = secrets.token_hex(16)
    argv = shim_argv(job=spec.job, nodes=spec.nodes, log_paths=spec.log_paths, argv=spec.argv)
    hint = cluster.submit_held(StartSpec(tuple(argv), spec.cwd, spec.environment, spec.user), key)
    record = read(settings.state_directory, key)
    if record is None:
        raise NotStarted(
            f"the job was not started: {hint.text}", where=spec.cwd, remedy="check the command line"
        )
    log = settings.state_directory / "output" / f"{key}.log"
    return Started(spec, local_incarnation(record.pid, record.ticks), key, log)


def _submit_elsewhere(spec: Spec, cluster: Cluster) -> Started:
    argv = shim_argv(job=spec.job, nodes=spec.nodes, log_paths=spec.log_paths, argv=spec.argv)
    wanted = StartSpec(tuple(argv), spec.cwd, spec.environment, spec.user)
    return Started(spec, submit_first(cluster, wanted, secrets.token_hex(16)))


def _submit(spec: Spec, caller: Caller) -> Started:
    argv = [spec.argv[0], "--parsable", *spec.argv[1:]]
    variables = environment({**spec.environment, **({"MIDWATCH_JOB": spec.job} if "/" in spec.job else {})})
    try:
        answer = caller.run(argv, variables, cwd=spec.cwd, timeout=_SUBMIT_S)
    except OSError as error:
        raise NotStarted(
            f"sbatch cannot be started: {error.strerror}",
            where=spec.argv[0],
            remedy="check that SLURM is installed here",
        ) from error
    native = answer.out.strip().partition(";")[0]
    if answer.code is None:
        raise ServiceUnreachable(
            f"SLURM did not answer within {_SUBMIT_S:.0f} s; it may have taken the job all the same",
            where="sbatch",
            remedy="look with `squeue --me` before you submit it again",
        )
    if answer.code != 0 or not native.isdigit():
        lines = (answer.err.strip() or answer.out.strip()).splitlines()
        raise NotStarted(
            f"sbatch refused the job: {lines[-1] if lines else answer.code}", where=" ".join(spec.argv)
        )
    return Started(spec, slurm_incarnation(native, 0))
