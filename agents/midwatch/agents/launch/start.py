"""`midwatch run`: signs and publishes a job's spec, starts the job, and publishes its incarnation. Shell."""

from __future__ import annotations

import getpass
import os
import secrets
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

from midwatch.agents.launch.first_start import NotStarted, scheduler_of, submit_first
from midwatch.agents.launch.job_spec import (
    RunRequest,
    Started,
    before_the_start,
    check_room,
    name_of,
    owner_of,
    spec_event,
    spec_of,
)
from midwatch.agents.launch.ray_start import start_on_ray
from midwatch.agents.launch.submission import Sending, sending, tasks_of
from midwatch.agents.launch.variables import allowed
from midwatch.agents.reporter import Reporter
from midwatch.agents.schedulers.base import Cluster, StartSpec
from midwatch.agents.schedulers.calls import Caller
from midwatch.agents.schedulers.environment_file import keep_environment
from midwatch.agents.schedulers.local.effect_file import read
from midwatch.agents.schedulers.local.scheduler import LocalCluster
from midwatch.agents.schedulers.ray.submission import is_ray
from midwatch.agents.schedulers.slurm.job_array import TASK, of_task
from midwatch.agents.schedulers.slurm.sbatch_argv import split
from midwatch.agents.schedulers.wrapping import is_sbatch, shim_argv
from midwatch.agents.signing import ensure_keys
from midwatch.agents.watcher.cancellation_notes import note_cancellation
from midwatch.streams.errors import ServiceUnreachable, UsageError
from midwatch.streams.records import Spec
from midwatch.streams.records.identity import local_incarnation, native_id, slurm_incarnation
from midwatch.streams.services.reachable import check_kafka
from midwatch.streams.settings.schema import Settings

_SUBMIT_S = 60.0
_LOOK_S = 0.1


def start(request: RunRequest, settings: Settings, caller: Caller) -> Started:
    """Starts the job once and publishes its spec.

    A job with a name has its spec published before the start. A job without one gets its native id as name.

    Raises:
        UsageError: the command line makes no sense.
        NotStarted: the scheduler or the machine refused.
        Unwatched: Kafka does not take the spec, or the disk is full. Nothing was started.
        ServiceUnreachable: SLURM does not answer, or Kafka went away after the start. The message says
            whether a job may have been started.
    """
    if is_ray(request.argv):
        return start_on_ray(request, settings, caller)
    elsewhere = None
    if request.scheduler:
        elsewhere = scheduler_of(request.scheduler, settings.extensions, settings.state_directory, caller)
    with before_the_start(settings):
        check_kafka(settings)
    reporter = Reporter(settings)
    try:
        with before_the_start(settings):
            check_room(settings.state_directory)
            signer = ensure_keys(settings.state_directory)
            kind = request.scheduler or ("slurm" if is_sbatch(request.argv) else "local")
            owner = owner_of(settings, kind)
            name = name_of(request.job, owner) if request.job else ""
            tasks = tasks_of(request.argv, request.cwd, os.environ) if kind == "slurm" else ()
            _check_paths(request, tasks)
            sent = _sending(request, settings, kind, "" if tasks else name)
            spec = spec_of(request, settings, kind, name or ":".join(owner))
            environment_file = keep_environment(settings.state_directory, sent.kept)
            spec = replace(spec, environment_file=str(environment_file))
            if name:
                for each in _specs(spec, tasks):
                    reporter.spec(signer.sign(each))
        try:
            if elsewhere is not None:
                started = _submit_elsewhere(spec, sent, elsewhere)
            elif kind == "slurm":
                started = _submit(spec, sent, caller)
            else:
                started = _spawn(spec, sent, settings, caller)
        except NotStarted:
            if not name:  # no spec names the file, and none ever will
                environment_file.unlink(missing_ok=True)
            raise
        if not name:
            spec = replace(spec, job=f"{spec.job}/{native_id(started.incarnation)}")
        signed = [signer.sign(each) for each in _specs(spec, tasks)]
        starts = _starts(started, signed, tasks)
        _publish(starts, request, reporter, with_specs=not name)
        return replace(started, spec=spec, tasks=starts) if tasks else starts[0]
    finally:
        reporter.close()


def _publish(starts: Sequence[Started], request: RunRequest, reporter: Reporter, *, with_specs: bool) -> None:
    for one in starts:
        if with_specs:
            reporter.spec(one.spec)
        event = spec_event(one.spec, one.incarnation)
        reporter.event(replace(event, policy_text=request.policy_text, any_line=request.any_line))


def _specs(spec: Spec, tasks: tuple[int, ...]) -> tuple[Spec, ...]:
    """The spec of each task of an array; of any other job its one spec."""
    return tuple(
        replace(
            spec,
            job=f"{spec.job}_{task}",
            log_paths=tuple(of_task(path, task) for path in spec.log_paths),
            checkpoint_directory=of_task(spec.checkpoint_directory, task),
        )
        for task in tasks
    ) or (spec,)


def _starts(started: Started, specs: Sequence[Spec], tasks: tuple[int, ...]) -> tuple[Started, ...]:
    if not tasks:
        return (replace(started, spec=specs[0]),)
    array = native_id(started.incarnation)
    return tuple(
        Started(spec, slurm_incarnation(f"{array}_{task}", 0))
        for spec, task in zip(specs, tasks, strict=True)
    )


def _check_paths(request: RunRequest, tasks: tuple[int, ...]) -> None:
    """Raises UsageError where the tasks of an array would share what each must have for itself."""
    named = [("--log", path) for path in (*request.log_paths, *request.node_logs)]
    named.append(("--checkpoint-dir", request.checkpoint_directory))
    for option, path in named:
        if len(tasks) > 1 and path and TASK not in path:
            raise UsageError(
                "the tasks of an array would share it",
                where=f"{option} {path}",
                remedy=f"write {TASK} where the index of the task belongs",
            )


def sbatch_answer(argv: tuple[str, ...], started: Started) -> str:
    """The line that sbatch itself would print for this command line; "" for none."""
    options = {option.name for option in split(argv[1:])[0]}
    if options & {"quiet", "Q"}:
        return ""
    return (
        started.answer if "parsable" in options else f"Submitted batch job {native_id(started.incarnation)}"
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


def _sending(request: RunRequest, settings: Settings, kind: str, job: str) -> Sending:
    """What the job gets of our environment: on SLURM what sbatch sends, elsewhere what `allowed` passes."""
    ours = dict(request.settings or {})
    ours["MIDWATCH_STATE_DIRECTORY"] = str(settings.state_directory.absolute())
    if kind != "slurm":
        variables = allowed(os.environ, request.variables) | ours
        return Sending((), variables, variables)
    if job:
        ours["MIDWATCH_JOB"] = job
    return sending(
        request.argv, cwd=request.cwd, environment=os.environ, ours=ours, by_name=request.variables
    )


def _spawn(spec: Spec, sent: Sending, settings: Settings, caller: Caller) -> Started:
    cluster = LocalCluster("local", settings.state_directory, caller)
    key = secrets.token_hex(16)
    argv = shim_argv(job=spec.job, nodes=spec.nodes, log_paths=spec.log_paths, argv=spec.argv)
    hint = cluster.submit_held(StartSpec(tuple(argv), spec.cwd, sent.kept, spec.user), key)
    record = read(settings.state_directory, key)
    if record is None:
        raise NotStarted(
            f"the job was not started: {hint.text}", where=spec.cwd, remedy="check the command line"
        )
    log = settings.state_directory / "output" / f"{key}.log"
    return Started(spec, local_incarnation(record.pid, record.ticks), key, log)


def _submit_elsewhere(spec: Spec, sent: Sending, cluster: Cluster) -> Started:
    argv = shim_argv(job=spec.job, nodes=spec.nodes, log_paths=spec.log_paths, argv=spec.argv)
    first = StartSpec(tuple(argv), spec.cwd, sent.kept, spec.user)
    return Started(spec, submit_first(cluster, first, secrets.token_hex(16)))


def _submit(spec: Spec, sent: Sending, caller: Caller) -> Started:
    words = [*sent.words, *([f"--export-file={spec.environment_file}"] if sent.by_file else [])]
    argv = [spec.argv[0], "--parsable", *words, *spec.argv[1:]]
    try:
        answer = caller.run(argv, sent.environment, cwd=spec.cwd, timeout=_SUBMIT_S)
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
    return Started(spec, slurm_incarnation(native, 0), answer=answer.out.strip())
