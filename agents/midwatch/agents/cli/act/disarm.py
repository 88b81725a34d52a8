"""`midwatch disarm JOB` or `--all`: a person forbids acting. `--all` needs no Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from midwatch.agents.cli.options import with_settings
from midwatch.streams.errors import ConfigurationError, ServiceUnreachable, UsageError
from midwatch.streams.host.clock import now_ms

if TYPE_CHECKING:
    from midwatch.streams.settings.schema import Settings


@click.command()
@click.argument("job", required=False)
@click.option("--all", "everything", is_flag=True, help="No act for any job, from this moment on.")
@click.option("--future", is_flag=True, help="JOB is yet to come; give its whole name.")
@with_settings()
def disarm(*, job: str | None, everything: bool, future: bool, settings: Settings) -> None:
    """Keep midwatch from acting, for JOB or for all. Run it on the executor's host.

    JOB is cluster:user/run, or the run alone, or a scheduler's id. It works at once: the executor reads this
    mark before each act. What was begun is left as it is.
    """
    from midwatch.agents.acts import coming_job, known_job, tell_act
    from midwatch.agents.executor.arming import disarm_all, mark_job
    from midwatch.streams.records.identity import is_job

    if everything == bool(job):
        raise UsageError("name a job, or say --all", where="midwatch disarm", remedy="midwatch disarm JOB")
    if everything:
        disarm_all(settings.state_directory, at=now_ms() / 1000)
        click.echo("nothing is done any more, for any job; `midwatch arm --all` takes it back")
        return
    asked, unknown = job or "", None
    try:
        name = coming_job(asked) if future else known_job(settings, asked, now_ms())
    except (ServiceUnreachable, ConfigurationError) as error:
        if not is_job(asked.encode()):
            raise ServiceUnreachable(
                f"nothing is disarmed, for nobody tells which job {asked} is: {error.what}",
                where=error.where,
                remedy="give the whole name, cluster:user/run, or stop every act: midwatch disarm --all",
            ) from error
        # A whole name may be right, and to act no more does no harm.
        name, unknown = asked, error
    mark = mark_job(settings.state_directory, name, armed=False, at=now_ms() / 1000)
    click.echo(f"{name} is disarmed")
    if unknown is None:
        tell_act(settings, mark, "disarm")
        return
    raise ServiceUnreachable(
        f"the executor of this host obeys; whether there is such a job could not be asked: {unknown.what}",
        where=unknown.where,
        remedy="say it again once Kafka is there, or stop every act: midwatch disarm --all",
    )
