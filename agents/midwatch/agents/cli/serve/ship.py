"""`midwatch ship`: the sidecar. It imports no Faust, and Kafka's client only when it ships."""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from midwatch.agents.cli.options import with_settings

if TYPE_CHECKING:
    from midwatch.shippers.files.followed import Start
    from midwatch.shippers.identity import IdentityArguments
    from midwatch.shippers.pipe.process import PipeShipment
    from midwatch.streams.settings.schema import Settings


class _Options(TypedDict):
    job: str | None
    node: str | None
    nodes: int | None
    pid: int | None
    until_pid: bool
    start: Start
    drain: float | None
    ray: str | None
    submission_id: str | None
    config: Path | None
    state_directory: str | None
    changes: tuple[str, ...]


_COMMAND = f"{__name__}.command"


class ShipCommand(click.Command):
    """Keeps the words behind `--` apart: they are a command, and no paths."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            ctx.meta[_COMMAND] = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(ctx, args)


@click.command("ship", cls=ShipCommand)
@click.argument("paths", nargs=-1, metavar="PATH...|-|-- COMMAND")
@click.option(
    "--job", metavar="NAME", help="The run's name [default: MIDWATCH_JOB, else the scheduler's id]."
)
@click.option("--node", metavar="NAME", help="This node's name [default: the scheduler's, else the host's].")
@click.option("--nodes", type=click.IntRange(min=1), help="How many nodes the job runs on.")
@click.option("--pid", type=click.IntRange(min=1), help="The job's process here [default: MIDWATCH_JOB_PID].")
@click.option("--until-pid", is_flag=True, help="End when the job's process has ended.")
@click.option(
    "--start",
    type=click.Choice(["checkpoint", "beginning", "end"]),
    default="checkpoint",
    show_default=True,
    help="Where to begin in a file that exists already.",
)
@click.option("--drain", type=click.FloatRange(min=0.1), help="Seconds to send the rest after the job's end.")
@click.option("--ray", metavar="ADDRESS", help="Ship the driver logs of the settings' Ray head, by its API.")
@click.option("--submission-id", metavar="ID", help="With --ray: of this job alone, until it has ended.")
@click.option("--config", type=click.Path(path_type=Path), help="Settings file [default: midwatch.yaml].")
@click.option("--state-directory", metavar="DIR", help="Checkpoints [default: ~/.local/state/midwatch].")
@click.option("--set", "changes", metavar="KEY=VALUE", multiple=True, help="Change one setting.")
def ship(paths: tuple[str, ...], **options: Unpack[_Options]) -> int:
    """Follow the log files of a job on this node and send their lines, with a heartbeat every few seconds.

    PATH is a file (it need not exist yet), a glob or a directory. With `-` the output of a training passes
    through, unchanged and at once:

        train 2>&1 | midwatch ship --job my-run -

    Ends at SIGTERM, or with --until-pid after the job's process. Before it ends, it sends the rest.

    With `--` it runs the command itself, for example as the first process of a container:

        midwatch ship --job my-run -- python train.py

    It passes on the command's output, exit code and signals, and reports the command's end at once.
    """
    command_line: tuple[str, ...] | None = click.get_current_context().meta.get(_COMMAND)
    if command_line is not None:
        return _run_command(command_line, paths, options)
    if "-" in paths and paths != ("-",):
        raise click.UsageError("'-' is the training's output; it cannot be followed together with files")
    if paths == ("-",):
        from midwatch.shippers.messages import reporter
        from midwatch.shippers.pipe.producer import run_pipe

        # It reads the settings only once the output flows: a mistake in them must not end the training.
        return run_pipe(lambda: _piped(options), reporter())
    if options["ray"] or options["submission_id"]:
        return _ship_ray(paths, options)
    settings = _settings(options)  # first, so that a mistake in them is reported before slow imports
    from midwatch.shippers.ship import Shipment, run_ship
    from midwatch.shippers.sidecar import DRAIN

    shipment = Shipment(
        paths,
        _identity_arguments(options),
        start=options["start"],
        until_pid=options["until_pid"],
        drain=options["drain"] or DRAIN,
    )
    return run_ship(shipment, settings)


command = ship


def _run_command(command_line: tuple[str, ...], paths: tuple[str, ...], options: _Options) -> int:
    if not command_line:
        raise click.UsageError("no command stands behind '--'")
    if paths:
        raise click.UsageError("files and a command exclude each other: let the command print its lines")
    if options["pid"] or options["until_pid"]:
        raise click.UsageError("the process is the command: leave out --pid and --until-pid")
    from midwatch.shippers.messages import reporter
    from midwatch.shippers.pipe.command import run_command
    from midwatch.shippers.pipe.unsent import unsent_directory

    unsent = None
    with contextlib.suppress(Exception):  # a mistake in the settings stops no command; its output reports it
        unsent = unsent_directory(_settings(options).state_directory)
    return run_command(
        command_line, lambda pid, ticks: _of_command(options, pid, ticks), reporter(), unsent=unsent
    )


def _of_command(options: _Options, pid: int, ticks: int) -> PipeShipment:
    """The shipment of a command that we started. Its end is ours to report, unless a scheduler names it."""
    from midwatch.shippers.identity import identify
    from midwatch.shippers.pipe.process import PIPE_DRAIN, PipeShipment
    from midwatch.shippers.ship import in_cluster, machine
    from midwatch.streams.records.identity import local_incarnation

    settings = _settings(options)
    arguments = in_cluster(_identity_arguments({**options, "pid": pid}), settings)
    origin = identify(arguments, os.environ, replace(machine(pid), start_ticks=ticks))
    ours = origin.incarnation == local_incarnation(pid, ticks)
    return PipeShipment(origin, settings, pid=pid, drain=options["drain"] or PIPE_DRAIN, reports_end=ours)


def _ship_ray(paths: tuple[str, ...], options: _Options) -> int:
    if paths or not options["ray"]:
        raise click.UsageError("--ray ADDRESS reads driver logs by the head's API, and follows no files")
    settings = _settings(options)
    from midwatch.shippers.ray.ship import head_of, ship_driver_log, ship_head

    head = head_of(options["ray"], settings)
    if options["submission_id"]:
        return ship_driver_log(head, options["submission_id"], _identity_arguments(options), settings)
    arguments = [f"--ray={options['ray']}", *(f"--set={change}" for change in options["changes"])]
    arguments += [f"--config={options['config']}"] if options["config"] else []
    arguments += [f"--state-directory={options['state_directory']}"] if options["state_directory"] else []
    return ship_head(head, settings.state_directory, arguments)


def _piped(options: _Options) -> PipeShipment:
    from midwatch.shippers.identity import identify
    from midwatch.shippers.pipe.process import PIPE_DRAIN, PipeShipment
    from midwatch.shippers.ship import in_cluster, job_pid, machine

    settings = _settings(options)
    arguments = in_cluster(_identity_arguments(options), settings)
    pid = job_pid(arguments, os.environ)
    return PipeShipment(
        identify(arguments, os.environ, machine(pid)), settings, pid=pid, drain=options["drain"] or PIPE_DRAIN
    )


def _identity_arguments(options: _Options) -> IdentityArguments:
    from midwatch.shippers.identity import IdentityArguments

    return IdentityArguments(
        job=options["job"], node=options["node"], nodes=options["nodes"], pid=options["pid"]
    )


def _settings(options: _Options) -> Settings:
    """The settings; without an address of Kafka, that of the `midwatch up` on this machine."""
    from midwatch.streams.services.connection import with_connection

    read = with_settings()(lambda *, settings: settings)
    settings: Settings = read(
        config=options["config"], state_directory=options["state_directory"], changes=options["changes"]
    )
    return settings if settings.kafka.bootstrap else with_connection(settings)
