"""`midwatch disarm JOB` or `--all`: a person forbids acting. `--all` needs no Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from midwatch.agents.cli.options import with_settings
from midwatch.streams.clock import now_ms
from midwatch.streams.errors import MidwatchError, UsageError

if TYPE_CHECKING:
    from midwatch.streams.settings import Settings


@click.command()
@click.argument("job", required=False)
@click.option("--all", "everything", is_flag=True, help="No act for any job, from this moment on.")
@with_settings()
def disarm(job: str | None, everything: bool, settings: Settings) -> None:
    """Keep midwatch from acting, for JOB or for all. Run it on the executor's host.

    It works at once: the executor reads this mark before each act. What was begun is left as it is.
    """
    from midwatch.agents.executor.arming import disarm_all, mark_job
    from midwatch.agents.run.acts import full_name, tell_act

    if everything == bool(job):
        raise UsageError("name a job, or say --all", where="midwatch disarm", remedy="midwatch disarm JOB")
    if everything:
        disarm_all(settings.state_directory, at=now_ms() / 1000)
        click.echo("nothing is done any more, for any job; `midwatch arm --all` takes it back")
        return
    name = full_name(job or "", settings)
    mark = mark_job(settings.state_directory, name, armed=False, at=now_ms() / 1000)
    click.echo(f"{name} is disarmed")
    try:
        tell_act(settings, mark, "disarm")
    except MidwatchError as error:
        click.echo(f"the executor obeys already, but `why` does not know of it: {error}", err=True)
