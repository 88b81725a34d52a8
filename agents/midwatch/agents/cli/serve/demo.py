"""`midwatch demo`: the whole real chain on this machine, judged by the training's own ledger."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import click

from midwatch.agents.cli.options import with_settings

if TYPE_CHECKING:
    from midwatch.agents.local.demo.scenario import Without
    from midwatch.streams.settings.schema import Settings


@click.command()
@click.option(
    "--directory", type=click.Path(path_type=Path), help="Its working directory [default: a new one]."
)
@click.option(
    "--jars",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Directory with Kafka's jars; nothing is downloaded.",
)
@click.option("--maven-mirror", metavar="URL", help="Download Kafka's jars from this mirror.")
@click.option(
    "--patience", type=float, default=75.0, show_default=True, help="Seconds until all facts must hold."
)
@click.option(
    "--cluster",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="Where the training runs: as processes of this machine, or on a Ray head.",
)
@click.option(
    "--without",
    type=click.Choice(["nccl-rule", "executor", "redis"]),
    help="Break one part; the demo then shows which fact fails.",
)
@with_settings(arguments=True)
def demo(
    *,
    directory: Path | None,
    jars: Path | None,
    maven_mirror: str | None,
    patience: float,
    without: str | None,
    cluster: str,
    settings: Settings,
    settings_arguments: list[str],
) -> int:
    """Show a toy training that fails, is rescued, and fails for good.

    The demo starts the agents, the executor, and a Kafka and a Redis unless the settings name them. The toy
    training has 8 processes. First it dies of an NCCL timeout, and midwatch restarts it once; it resumes from
    its checkpoint. Then its loss spikes, which is a finding. Then one rank runs out of memory, and midwatch
    does not restart it. The training's own ledger is the judge. Exit code 1: a fact does not hold.

    With --cluster ray the training is a job of the settings' Ray head, else of one that the demo starts.
    """
    from midwatch.agents.local.demo.scenario import Options, default_directory, run

    up = [f"--jars={jars.absolute()}"] if jars else []
    up += [f"--maven-mirror={maven_mirror}"] if maven_mirror else []
    broken = cast("Without | None", without)
    options = Options(
        directory or default_directory(),
        tuple(settings_arguments),
        tuple(up),
        broken,
        cluster=cast("Literal['local', 'ray']", cluster),
        patience=patience,
    )
    return run(settings, options, click.echo)
