"""`midwatch up`: Kafka, Redis, agents and executor on one machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from midwatch.agents.cli.options import with_settings

if TYPE_CHECKING:
    from midwatch.streams.settings.schema import Settings


@click.command()
@click.option(
    "--jars",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Directory with Kafka's jars; nothing is downloaded.",
)
@click.option("--maven-mirror", metavar="URL", help="Download Kafka's jars from this mirror.")
@click.option(
    "--act", is_flag=True, help="Let the watch act for armed jobs; else it only says what it would do."
)
@click.option(
    "--rules",
    type=click.Path(path_type=Path, exists=True),
    multiple=True,
    help="A rule file or a directory of them, besides those of the settings.",
)
@click.option("--no-executor", is_flag=True, help="Start no executor, because it runs on another host.")
@with_settings(arguments=True)
def up(
    *,
    jars: Path | None,
    maven_mirror: str | None,
    act: bool,
    no_executor: bool,
    rules: tuple[Path, ...],
    settings: Settings,
    settings_arguments: list[str],
) -> None:
    """Run the whole watch on this machine: Kafka and Redis, three agents, the executor.

    It uses the Kafka and Redis that the settings name. If they name none, it starts its own, without Docker.
    Other commands with the same state directory find it by themselves. Ctrl-C stops everything.
    """
    from dataclasses import replace

    from midwatch.agents.cli.extras import need

    given = settings.kafka.bootstrap and settings.redis.url
    need("server", *(() if given or jars else ("embedded",)))
    from midwatch.agents.local.up.lifecycle import run
    from midwatch.agents.local.up.services import Jars

    if act:
        settings = replace(settings, watch=replace(settings.watch, mode="act"))
        settings_arguments.append("--set=watch.mode=act")
    if rules:
        directories = tuple(path.absolute() for path in (*settings.rules.directories, *rules))
        settings = replace(settings, rules=replace(settings.rules, directories=directories))
        settings_arguments.append("--set=rules.directories=" + ",".join(map(str, directories)))
    run(settings, settings_arguments, Jars(jars, maven_mirror), click.echo, executor=not no_executor)
