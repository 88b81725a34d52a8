"""`midwatch disarm JOB` or `--all`: a person keeps midwatch from acting. `--all` needs no Kafka."""

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
@click.option("--all", "everything", is_flag=True, help="Keep midwatch from acting for any job, from now on.")
@click.option("--future", is_flag=True, help="JOB has not started yet; give its whole name.")
@with_settings()
def disarm(*, job: str | None, everything: bool, future: bool, settings: Settings) -> None:
    """Keep midwatch from acting, for JOB or for all jobs. Run it on the executor's host.

    JOB is cluster:user/run, or the run alone, or a scheduler's id. It works at once: the executor reads this
    mark before each act. midwatch leaves an act that it has begun as it is.
    """
    from midwatch.agents.acts import coming_job, known_job, tell_act
    from midwatch.agents.executor.arming import disarm_all, mark_job
    from midwatch.streams.records.identity import is_job

    if everything == bool(job):
        raise UsageError("name a job, or give --all", where="midwatch disarm", remedy="midwatch disarm JOB")
    if everything:
        disarm_all(settings.state_directory, at=now_ms() / 1000)
        click.echo("midwatch acts for no job any more; `midwatch arm --all` undoes this")
        return
    requested, unreachable = job or "", None
    try:
        name = coming_job(requested) if future else known_job(settings, requested, now_ms())
    except (ServiceUnreachable, ConfigurationError) as error:
        if not is_job(requested.encode()):
            raise ServiceUnreachable(
                f"nothing is disarmed: midwatch cannot find out which job {requested} is: {error.what}",
                where=error.where,
                remedy="give the whole name, cluster:user/run, or stop all acts: midwatch disarm --all",
            ) from error
        # A whole name is probably right, and disarming a job that does not exist does no harm.
        name, unreachable = requested, error
    mark = mark_job(settings.state_directory, name, armed=False, at=now_ms() / 1000)
    click.echo(f"{name} is disarmed")
    if unreachable is None:
        tell_act(settings, mark, "disarm")
        return
    raise ServiceUnreachable(
        f"the executor of this host obeys, but nobody could check that the job exists: {unreachable.what}",
        where=unreachable.where,
        remedy="repeat the command once Kafka answers, or stop all acts: midwatch disarm --all",
    )
