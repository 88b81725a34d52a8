"""`midwatch executor`: claims commands, carries each out at most once, and watches the scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from midwatch.agents.cli.options import with_settings

if TYPE_CHECKING:
    from midwatch.streams.settings.schema import Settings


@click.command()
@with_settings(connected=True)
def executor(settings: Settings) -> None:
    """Carry out commands and watch the scheduler. One per cluster, on a host with its tools.

    It refuses to act with a Redis that could lose a claim. With `watch.mode: observe` it only watches.
    """
    from midwatch.agents.cli.serve.process_log import log_to_stderr
    from midwatch.agents.executor.service import run

    log_to_stderr(settings.log_level)
    run(settings)
