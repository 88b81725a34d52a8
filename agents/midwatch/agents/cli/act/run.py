"""`midwatch run -- …`: start a job and record how to start it again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from midwatch.agents.cli.options import json_option, with_settings
from midwatch.streams.errors import UsageError

if TYPE_CHECKING:
    from midwatch.agents.launch.start import Started
    from midwatch.streams.settings.schema import Settings

_NEIGHBOURS_S = 10.0


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("--job", default="", metavar="NAME", help="The job's name [default: its native id].")
@click.option(
    "--log", "logs", multiple=True, metavar="PATH", help="A log file to follow, besides the output."
)
@click.option(
    "--node-log",
    "node_logs",
    multiple=True,
    metavar="PATH",
    help="A log on the disk of each node of a SLURM job, followed there; %N is the node's name.",
)
@click.option("--checkpoint-dir", default="", metavar="DIR", help="Where the training keeps its checkpoints.")
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
    help="The policy that judges its end: a name, or a file of yours [default: the settings'].",
)
@click.option("--act", "armed", is_flag=True, help="Let midwatch act for this job; else it only observes.")
@click.option("--nodes", default=1, show_default=True, type=click.IntRange(1), help="Nodes with a shipper.")
@click.option("--limit", "limits", multiple=True, metavar="PHASE=TIME", help="Silence allowed: training=30s.")
@click.option(
    "--max-restarts",
    type=click.IntRange(0),
    help="At most so many restarts; the policy's limits hold too.",
)
@click.option("--env", "variables", multiple=True, metavar="NAME", help="A variable that the job needs.")
@click.option("--wait", is_flag=True, help="Show a local job's output until it ends; return its exit code.")
@json_option
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED)
@with_settings(connected=True)
def run(
    argv: tuple[str, ...], settings: Settings, *, logs: tuple[str, ...], limits: tuple[str, ...], **asked: Any
) -> int:
    """Start a job under the watch: `midwatch run -- python train.py`, `midwatch run -- sbatch train.sh`.

    It returns once the job runs or is queued; the job outlives this terminal. With --wait, Ctrl-C ends it.
    """
    from midwatch.agents.launch.job_policy import job_policy
    from midwatch.agents.launch.start import RunRequest, follow, note_interrupts, start
    from midwatch.agents.schedulers.calls import SystemCaller
    from midwatch.agents.schedulers.wrapping import is_sbatch

    own = job_policy(asked["policy"], settings)
    wanted = RunRequest(
        argv=argv,
        cwd=Path.cwd(),
        job=asked["job"],
        log_paths=logs,
        node_logs=asked["node_logs"],
        checkpoint_directory=asked["checkpoint_dir"],
        resume_arguments=_resume_arguments(asked["resume_arguments"], asked["checkpoint_dir"], argv),
        policy=own.name,
        policy_text=own.text,
        any_line=own.any_line,
        armed=asked["armed"],
        nodes=asked["nodes"],
        limits={**own.limits, **dict(_limit(text) for text in limits)},
        max_restarts=asked["max_restarts"],
        variables=asked["variables"],
        settings=_as_variables(settings, click.get_current_context().params),
    )
    if asked["wait"] and is_sbatch(argv):
        raise UsageError(
            "a SLURM job is not waited for", where="--wait", remedy="leave it out; `midwatch why JOB` tells"
        )
    for note in own.notes:
        click.echo(note, err=True)
    pressed = note_interrupts() if asked["wait"] else []
    caller = SystemCaller()
    started = start(wanted, settings, caller)
    _tell(started, settings, as_json=asked["as_json"])
    _warn_of_neighbours(started, settings)
    return follow(started, settings, caller, pressed) if asked["wait"] else 0


def _as_variables(settings: Settings, given: dict[str, Any]) -> dict[str, str]:
    """What makes the job's shipper find the settings of this command line, wherever it runs."""
    from midwatch.streams.settings.reader import variable_name

    file = next((s for s in settings.sources if s.endswith((".yaml", ".yml")) and Path(s).is_file()), None)
    found = {"MIDWATCH_CONFIG": str(Path(file).absolute())} if file else {}
    for change in given.get("changes") or ():
        name, _, value = change.partition("=")
        found[variable_name(tuple(name.split(".")))] = value
    return found


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


def _tell(started: Started, settings: Settings, *, as_json: bool) -> None:
    from midwatch.agents.executor.arming import marked_arming
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
        }
        click.echo(json.dumps(body))
        sys.stdout.flush()
    elif spec.cluster == "slurm":
        click.echo(f"Submitted batch job {native}")
    log = f", its output is in {started.log}" if started.log else ""
    click.echo(f"midwatch: {spec.job} is started as {native}{log}", err=True)
    mark = marked_arming(settings.state_directory, spec.job)
    if spec.armed and mark is not None and not mark.armed:
        click.echo(f"midwatch: nothing is done for it all the same: {mark.reason}", err=True)
    elif spec.armed and not settings.armed:
        click.echo(
            "midwatch: it is armed, but the watch is in observe mode: set watch.mode: act to let it act",
            err=True,
        )
    elif not spec.armed:
        click.echo(f"midwatch: it is observed only; `midwatch arm {spec.job}` lets midwatch act", err=True)


def _warn_of_neighbours(started: Started, settings: Settings) -> None:
    """Two living jobs of one name, or of one checkpoint directory, are told of; the start stands."""
    from midwatch.agents.query.inquiry import ask_neighbours
    from midwatch.streams.errors import ServiceUnreachable
    from midwatch.streams.host.clock import now_ms

    spec = started.spec
    try:
        found = ask_neighbours(settings, spec, started.incarnation, now_ms(), patience=_NEIGHBOURS_S)
    except ServiceUnreachable as error:
        click.echo(f"midwatch: whether another job has its name was not found out: {error}", err=True)
        return
    for job in found.of_its_name:
        remedy = (
            "two starts of one job at once are held and not rescued; end one of them"
            if job == spec.job
            else "where you mean one of them, name the whole of it, cluster:user/run"
        )
        click.echo(f"midwatch: warning: {job} runs already: {remedy}", err=True)
    for job in found.of_its_checkpoints:
        click.echo(
            f"midwatch: warning: {job} writes its checkpoints to the same directory: "
            "each may resume from what the other wrote",
            err=True,
        )
