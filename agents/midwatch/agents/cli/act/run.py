"""`midwatch run -- …`: starts a job and records how to start it again."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, get_args

import click

from midwatch.agents.cli.options import json_option, with_settings
from midwatch.streams.errors import MidwatchError, ServiceUnreachable, UsageError

if TYPE_CHECKING:
    from midwatch.agents.launch.job_spec import Started
    from midwatch.streams.settings.schema import Settings

_NEIGHBOURS_S = 10.0


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("--job", default="", metavar="NAME", help="The job's name [default: the scheduler's id].")
@click.option(
    "--log", "logs", multiple=True, metavar="PATH", help="A log file to follow, besides the job's output."
)
@click.option(
    "--node-log",
    "node_logs",
    multiple=True,
    metavar="PATH",
    help="A log file on each SLURM node's own disk; %N is the node's name.",
)
@click.option(
    "--checkpoint-dir",
    default="",
    metavar="DIR",
    help="Where the training keeps its checkpoints: a path, or s3://...",
)
@click.option(
    "--resume-arg",
    "resume_arguments",
    multiple=True,
    metavar="WORDS",
    help="Added to a restart's command line: '--load {checkpoint}'; also {step}, {directory}.",
)
@click.option(
    "--policy",
    default="",
    help="The job's policy: a name or a file [default: the settings' policy].",
)
@click.option(
    "--act", "armed", is_flag=True, help="Let midwatch act for this job; else midwatch only observes."
)
@click.option("--nodes", default=1, show_default=True, type=click.IntRange(1), help="Nodes with a shipper.")
@click.option(
    "--limit", "limits", multiple=True, metavar="PHASE=TIME", help="Longest silence of a phase: training=30s."
)
@click.option(
    "--max-restarts",
    type=click.IntRange(0),
    help="At most this many restarts; the policy's limits hold too.",
)
@click.option(
    "--env", "variables", multiple=True, metavar="NAME", help="An environment variable that the job needs."
)
@click.option(
    "--wait", is_flag=True, help="Show a local job's output until it ends, and return its exit code."
)
@click.option(
    "--follow",
    is_flag=True,
    help="Where midwatch restarts a job that this sbatch job depends on, let it wait for the new start.",
)
@click.option(
    "--anyway",
    is_flag=True,
    help="If the watch cannot take the job (no Kafka, a full disk), start it all the same, unwatched.",
)
@click.option(
    "--secret",
    "secrets",
    multiple=True,
    metavar="NAME=FILE",
    help="On Ray: a variable whose value lies in a file on the cluster.",
)
@click.option(
    "--sidecar",
    is_flag=True,
    help="On Ray: ship from within the entrypoint; midwatch must be installed there.",
)
@click.option("--scheduler", default="", metavar="NAME", help="A foreign scheduler that the settings name.")
@json_option
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED)
@with_settings()
def run(
    argv: tuple[str, ...],
    settings: Settings,
    *,
    logs: tuple[str, ...],
    limits: tuple[str, ...],
    **options: Any,
) -> int:
    """Start a job under the watch: `midwatch run -- python train.py`, `midwatch run -- sbatch train.sh`.

    It returns once the job runs or is queued; the job outlives this terminal. With --wait, Ctrl-C ends it.
    A job that --anyway starts unwatched runs in this terminal, as without midwatch.
    """
    from midwatch.agents.launch.job_policy import job_policy
    from midwatch.agents.launch.job_spec import RunRequest, Unwatched
    from midwatch.agents.launch.start import follow, note_interrupts, start
    from midwatch.agents.schedulers.calls import SystemCaller
    from midwatch.agents.schedulers.checkpoint_store import place
    from midwatch.agents.schedulers.ray.submission import is_ray
    from midwatch.agents.schedulers.wrapping import is_sbatch
    from midwatch.streams.services.connection import with_connection

    place(options["checkpoint_dir"])
    try:
        settings = with_connection(settings)
    except ServiceUnreachable as error:
        if not options["anyway"]:
            raise
        _start_unwatched(argv, error)
    policy = job_policy(options["policy"], settings)
    request = RunRequest(
        argv=argv,
        cwd=Path.cwd(),
        job=options["job"],
        log_paths=logs,
        node_logs=options["node_logs"],
        checkpoint_directory=options["checkpoint_dir"],
        resume_arguments=_resume_arguments(options["resume_arguments"], options["checkpoint_dir"], argv),
        policy=policy.name,
        policy_text=policy.text,
        any_line=policy.any_line,
        armed=options["armed"],
        nodes=options["nodes"],
        limits={**policy.limits, **dict(_limit(text) for text in limits)},
        max_restarts=options["max_restarts"],
        variables=options["variables"],
        scheduler=options["scheduler"],
        follow=options["follow"],
        secrets=options["secrets"],
        sidecar=options["sidecar"],
        settings=_as_variables(settings, click.get_current_context().params),
    )
    if options["scheduler"] and (options["wait"] or is_sbatch(argv)):
        raise UsageError(
            "a job of a foreign scheduler is neither waited for nor one of sbatch",
            where="--scheduler",
            remedy="name its program, midwatch run --scheduler NAME -- python train.py",
        )
    if options["follow"] and not is_sbatch(argv):
        raise UsageError(
            "only a job of sbatch waits for another",
            where="--follow",
            remedy="leave it out, or start the job by sbatch --dependency=afterok:ID",
        )
    if (options["secrets"] or options["sidecar"]) and not is_ray(argv):
        raise UsageError(
            "only a job on Ray takes it",
            where="--secret" if options["secrets"] else "--sidecar",
            remedy="a job on SLURM or this machine has a shipper and your variables already",
        )
    if options["wait"] and (is_sbatch(argv) or is_ray(argv)):
        raise UsageError(
            "--wait works for a local job only",
            where="--wait",
            remedy="leave it out; `midwatch why JOB` shows how the job ended",
        )
    for note in policy.notes:
        click.echo(note, err=True)
    interrupts = note_interrupts() if options["wait"] else []
    caller = SystemCaller()
    try:
        started = start(request, settings, caller)
    except Unwatched as error:
        if not options["anyway"]:
            raise
        _start_unwatched(argv, error)
    _show(started, argv, settings, as_json=options["as_json"])
    _warn_of_neighbours(started.tasks[0] if started.tasks else started, settings)
    return follow(started, settings, caller, interrupts) if options["wait"] else 0


def _start_unwatched(argv: tuple[str, ...], error: MidwatchError) -> NoReturn:
    """Become the command itself. Nothing of midwatch stays."""
    reason = f"{error.where}: {error.what}" if error.where else error.what
    click.echo(f"midwatch: the job starts unwatched: {reason}", err=True)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        os.execvp(argv[0], argv)  # noqa: S606  # the user's own command
    except OSError as failed:
        raise UsageError(f"it cannot be started: {failed.strerror}", where=argv[0]) from failed


def _as_variables(settings: Settings, parameters: dict[str, Any]) -> dict[str, str]:
    """Environment variables by which the job's shipper finds the settings of this command line."""
    from midwatch.streams.settings.reader import variable_name

    file = next((s for s in settings.sources if s.endswith((".yaml", ".yml")) and Path(s).is_file()), None)
    variables = {"MIDWATCH_CONFIG": str(Path(file).absolute())} if file else {}
    for change in parameters.get("changes") or ():
        name, _, value = change.partition("=")
        variables[variable_name(tuple(name.split(".")))] = value
    return variables


def _resume_arguments(texts: tuple[str, ...], directory: str, argv: tuple[str, ...]) -> tuple[str, ...]:
    """The template for a restart's arguments. Raises UsageError where nothing could fill or read them."""
    from midwatch.agents.schedulers.resume import template
    from midwatch.agents.schedulers.slurm.sbatch_argv import split
    from midwatch.agents.schedulers.wrapping import is_sbatch

    if texts and not directory:
        raise UsageError(
            "no directory is known to hold checkpoints",
            where="--resume-arg",
            remedy="name it: --checkpoint-dir DIR",
        )
    if texts and is_sbatch(argv) and any(option.name == "wrap" for option in split(argv[1:])[0]):
        raise UsageError(
            "a wrapped command takes no arguments",
            where="--resume-arg",
            remedy='write the command to a script that passes "$@" on: midwatch run -- sbatch train.sh',
        )
    return template(texts)


def _limit(text: str) -> tuple[str, float]:
    from midwatch.streams.records import Phase
    from midwatch.streams.settings.kinds import Given, WrongValue, duration

    phase, equals, value = text.partition("=")
    if not equals or phase not in get_args(Phase):
        raise UsageError(
            f"{text!r} is not PHASE=TIME",
            where="--limit",
            remedy=f"a phase is one of {', '.join(get_args(Phase))}; write for example training=30s",
        )
    try:
        return phase, duration(1).read(Given(value, Path()))
    except WrongValue as error:
        raise UsageError(error.what, where=f"--limit {text}", remedy=error.remedy) from error


def _show(started: Started, argv: tuple[str, ...], settings: Settings, *, as_json: bool) -> None:
    from midwatch.agents.executor.arming import marked_arming
    from midwatch.agents.launch.start import sbatch_answer
    from midwatch.streams.records.identity import native_id

    spec, native = started.spec, native_id(started.incarnation)
    if as_json:
        import json

        body = {
            "version": 1,
            "job": spec.job,
            "native_id": native,
            "incarnation": started.incarnation,
            "log": str(started.log) if started.log else None,
            "armed": spec.armed,
            **({"tasks": [_identity(task) for task in started.tasks]} if started.tasks else {}),
        }
        click.echo(json.dumps(body))
        sys.stdout.flush()
    elif spec.cluster == "slurm" and (line := sbatch_answer(argv, started)):
        click.echo(line)
    for warning in started.warnings:
        click.echo(f"midwatch: warning: {warning}", err=True)
    log = f", its output is in {started.log}" if started.log else ""
    tasks = f", {len(started.tasks)} tasks, each a job by itself: {_range(started)}" if started.tasks else ""
    click.echo(f"midwatch: {spec.job} is started as {native}{log}{tasks}", err=True)
    first = started.tasks[0].spec.job if started.tasks else spec.job
    mark = marked_arming(settings.state_directory, first)
    if spec.armed and mark is not None and not mark.armed:
        click.echo(f"midwatch: it does not act for this job: {mark.reason}", err=True)
    elif spec.armed and not settings.armed:
        click.echo(
            "midwatch: the job is armed, but the watch is in observe mode; `watch.mode: act` lets it act",
            err=True,
        )
    elif not spec.armed:
        click.echo(f"midwatch: the job is observed only; `midwatch arm {first}` lets midwatch act", err=True)


def _identity(started: Started) -> dict[str, str]:
    from midwatch.streams.records.identity import native_id

    native = native_id(started.incarnation)
    return {"job": started.spec.job, "native_id": native, "incarnation": started.incarnation}


def _range(started: Started) -> str:
    """The names of an array's tasks, the first and the last."""
    first, last = started.tasks[0].spec.job, started.tasks[-1].spec.job
    return first if first == last else f"{first} to {last}"


def _warn_of_neighbours(started: Started, settings: Settings) -> None:
    """Warns of live jobs with the same name or the same checkpoint directory. The start stands."""
    from midwatch.agents.query.inquiry import ask_neighbours
    from midwatch.streams.errors import ServiceUnreachable
    from midwatch.streams.host.clock import now_ms

    spec = started.spec
    try:
        found = ask_neighbours(settings, spec, started.incarnation, now_ms(), patience=_NEIGHBOURS_S)
    except ServiceUnreachable as error:
        click.echo(f"midwatch: could not check whether another job has the same name: {error}", err=True)
        return
    for job in found.of_its_name:
        remedy = (
            "midwatch rescues no job of which two starts run at once; end one of them"
            if job == spec.job
            else "to mean one of them, give its whole name, cluster:user/run"
        )
        click.echo(f"midwatch: warning: {job} runs already: {remedy}", err=True)
    for job in found.of_its_checkpoints:
        click.echo(
            f"midwatch: warning: {job} writes its checkpoints to the same directory: "
            "each may resume from the other's checkpoint",
            err=True,
        )
