"""`midwatch health`: whether a worker or the executor of this host does its work, for a container's check."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from midwatch.agents.cli.options import with_settings

if TYPE_CHECKING:
    from midwatch.streams.settings.schema import Settings

NAMES = ("match", "detect", "decide", "executor")


@click.command()
@click.argument("name", type=click.Choice(NAMES))
@click.option(
    "--within",
    type=click.FloatRange(min=1.0),
    default=15.0,
    show_default=True,
    metavar="SECONDS",
    help="Longest time without a sign of the process.",
)
@with_settings()
def health(name: str, within: float, settings: Settings) -> int:
    """Check one process of the watch on this host, by what it writes into its state directory.

    Exit code 1: it does not run, hangs, has lost Kafka or its group, or leaves records unread. The check
    contacts nothing, so a container may run it every few seconds.
    """
    import time

    from midwatch.streams.worker.health import trouble_of

    trouble = trouble_of(settings.state_directory.expanduser(), name, time.monotonic(), within)
    click.echo(f"unhealthy: {trouble}" if trouble else f"healthy: {name}")
    return 1 if trouble else 0
