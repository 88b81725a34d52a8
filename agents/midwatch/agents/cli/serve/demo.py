"""`midwatch demo`: the whole real chain on this machine, judged from outside."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from midwatch.agents.cli.options import with_settings

if TYPE_CHECKING:
    from midwatch.agents.local.demo.scenario import Without
    from midwatch.streams.settings.schema import Settings


@click.command()
@click.option("--directory", type=click.Path(path_type=Path), help="Where it works [default: a new one].")
@click.option(
    "--jars", type=click.Path(path_type=Path), metavar="DIR", help="Kafka's jars, copied here before."
)
@click.option("--maven-mirror", metavar="URL", help="Download Kafka's jars from here.")
@click.option(
    "--patience", type=float, default=75.0, show_default=True, help="Seconds for all facts to hold."
)
@click.option(
    "--without",
    type=click.Choice(["nccl-rule", "executor", "redis"]),
    help="Break one part, and see the demo say which fact fails.",
)
@with_settings(arguments=True)
def demo(
    *,
    directory: Path | None,
    jars: Path | None,
    maven_mirror: str | None,
    patience: float,
    without: str | None,
    settings: Settings,
    settings_arguments: list[str],
) -> int:
    """Watch a toy training fail, be rescued, and fail for good.

    Starts Kafka, Redis, the agents and the executor, unless the settings name a Kafka and a Redis. The toy
    training (8 processes) first dies of an NCCL timeout: one restart, from its checkpoint. Then its loss
    spikes: a finding. Then one rank runs out of memory: no restart. Its own ledger judges; exit code 1 if a
    fact does not hold.
    """
    from midwatch.agents.local.demo.scenario import Options, default_directory, run

    up = [f"--jars={jars.absolute()}"] if jars else []
    up += [f"--maven-mirror={maven_mirror}"] if maven_mirror else []
    where = directory or default_directory()
    part = cast("Without | None", without)
    options = Options(where, tuple(settings_arguments), tuple(up), part, patience)
    return run(settings, options, click.echo)
