"""`midwatch worker AGENT`: runs one agent in this process until SIGTERM or a crash."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import click

from midwatch.agents.cli.options import with_settings

if TYPE_CHECKING:
    from midwatch.streams.settings.schema import Settings

AGENTS = ("match", "detect", "decide", "messages", "trace")


@click.command()
@click.argument("agent", type=click.Choice(AGENTS))
@with_settings(connected=True)
def worker(agent: str, settings: Settings) -> None:
    """Run one agent. Start at most as many as its topic has partitions; restart each one that ends.

    Of `trace`, which exports traces to `telemetry.otlp`, start one.
    """
    from midwatch.agents.cli.serve.process_log import log_to_stderr

    log_to_stderr(settings.log_level)
    importlib.import_module(f"midwatch.agents.{agent}.worker").run(settings)
