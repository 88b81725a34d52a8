"""The command `midwatch`. Importing it loads click alone; each sub-command loads when it is called.

A sub-command is one file in a folder below and one line in `COMMANDS`. It returns its exit code (None is 0):
0 fine, 1 a finding or unhealthy, 2 usage, 3 configuration or rule, 4 a service that cannot be reached.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

import click

from midwatch.streams.errors import MidwatchError

INTERRUPTED = 130


class Target(NamedTuple):
    """Where a sub-command is, and its line in `midwatch --help`."""

    place: str  # module:attribute
    summary: str


COMMANDS = {
    "ship": Target(
        "midwatch.agents.cli.serve.ship:ship", "Send a job's lines to Kafka: of files, a pipe or a command."
    ),
    "demo": Target("midwatch.agents.cli.serve.demo:demo", "Show the whole chain rescue a failing training."),
    "replay": Target("midwatch.agents.cli.ask.replay:replay", "Diagnose log files, offline."),
    "rules": Target("midwatch.agents.cli.rules.group:rules", "List, check, explain, test and push rules."),
    "up": Target("midwatch.agents.cli.serve.up:up", "Run the whole watch on this machine."),
    "run": Target("midwatch.agents.cli.act.run:run", "Start a job, and record how to start it again."),
    "arm": Target("midwatch.agents.cli.act.arm:arm", "Let midwatch act for a job."),
    "disarm": Target(
        "midwatch.agents.cli.act.disarm:disarm", "Keep midwatch from acting, for one job or all."
    ),
    "resume": Target(
        "midwatch.agents.cli.act.resume:resume", "Start a job again, with a changed configuration."
    ),
    "worker": Target(
        "midwatch.agents.cli.serve.worker:worker",
        "Run one agent: match, detect, decide, messages or trace.",
    ),
    "executor": Target(
        "midwatch.agents.cli.serve.executor:executor", "Carry out commands and watch the scheduler."
    ),
    "messages": Target(
        "midwatch.agents.cli.serve.messages:messages", "Try the channels on which people get messages."
    ),
    "why": Target(
        "midwatch.agents.cli.ask.why:why", "Show what happened to a job, and each decision's reason."
    ),
    "jobs": Target("midwatch.agents.cli.ask.jobs:jobs", "List the jobs under the watch."),
    "incidents": Target(
        "midwatch.agents.cli.ask.incidents:incidents", "List incidents of all jobs or of one."
    ),
    "export": Target("midwatch.agents.cli.ask.export:export", "Write a job's records to a file."),
    "decisions": Target("midwatch.agents.cli.ask.decisions:decisions", "List decisions with their reasons."),
    "outcomes": Target(
        "midwatch.agents.cli.ask.outcomes:outcomes", "Count how restarts ended, for the chance of the next."
    ),
    "health": Target(
        "midwatch.agents.cli.ask.health:health", "Check one worker, for a container's health check."
    ),
    "doctor": Target("midwatch.agents.cli.ask.doctor:doctor", "Check settings, Kafka, Redis and topics."),
}


class LazyGroup(click.Group):
    """A group that lists its sub-commands from `COMMANDS` and imports the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 (click's)
        target = COMMANDS.get(cmd_name)
        if target is None:
            return None
        module, _, attribute = target.place.partition(":")
        command = getattr(importlib.import_module(module), attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{target.place} is no click command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name].summary) for name in self.list_commands(ctx)])


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 fine, 1 a finding, 2 usage, 3 configuration or rule, 4 a service is unreachable.",
)
@click.version_option(package_name="midwatch", message="%(version)s")
def midwatch() -> None:
    """The watch from midnight to four over large training runs.

    midwatch sees a failure, a stall or a diverging loss, and shows the line that proves the cause. Where the
    policy allows it, midwatch restarts the job; the training resumes from its last complete checkpoint.

    midwatch only observes until you let it act.
    """


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs one command line and exits the process with its code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    sys.exit(run(arguments))


def run(arguments: Sequence[str]) -> int:
    """Runs one command line and returns its exit code. Errors go to standard error."""
    try:
        code = midwatch.main(list(arguments), prog_name="midwatch", standalone_mode=False)
    except MidwatchError as error:
        _show_error(error, as_json="--json" in arguments)
        return error.exit_code
    except ModuleNotFoundError as error:
        from midwatch.agents.cli.extras import ExtraNotInstalled, extra_of

        extra = extra_of(error.name)
        if extra is None:
            raise
        missing = ExtraNotInstalled((extra,), str(error.name))
        _show_error(missing, as_json="--json" in arguments)
        return missing.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has left (`| head`). Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code if isinstance(code, int) else 0


def _show_error(error: MidwatchError, *, as_json: bool) -> None:
    if as_json:
        import json

        body = {
            "what": error.what,
            "where": error.where,
            "remedy": error.remedy,
            "exit_code": error.exit_code,
        }
        click.echo(json.dumps({"version": 1, "error": body}))
    colour = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    head = click.style("error: ", fg="red", bold=True) if colour else "error: "
    click.echo(f"{head}{error}", err=True)
