"""`midwatch worker match|detect|decide`: one agent as this process, until SIGTERM or a crash."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import click

from midwatch.agents.cli.options import with_settings

if TYPE_CHECKING:
    from midwatch.streams.settings import Settings

AGENTS = ("match", "detect", "decide")


@click.command()
@click.argument("agent", type=click.Choice(AGENTS))
@click.option(
    "--log-level", type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"]), default="INFO", show_default=True
)
@with_settings(connected=True)
def worker(agent: str, log_level: str, settings: Settings) -> None:
    """Run one agent. Start as many as its topic has partitions; a supervisor must restart each at once."""
    from midwatch.agents.cli.process_log import log_to_stderr
    from midwatch.streams.readiness import run_directory

    log_to_stderr(log_level)
    run_directory(settings.state_directory)
    importlib.import_module(f"midwatch.agents.{agent}").run(settings)
