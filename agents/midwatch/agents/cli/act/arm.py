"""`midwatch arm JOB`: a person lets midwatch act for a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from midwatch.agents.cli.options import with_settings
from midwatch.streams.errors import UsageError
from midwatch.streams.host.clock import now_ms

if TYPE_CHECKING:
    from midwatch.streams.settings.schema import Settings


@click.command()
@click.argument("job", required=False)
@click.option(
    "--all", "everything", is_flag=True, help="Undo `disarm --all`; each job is armed or not as before."
)
@with_settings()
def arm(job: str | None, everything: bool, settings: Settings) -> None:
    """Let midwatch act for JOB. Run it on the executor's host, with its state directory.

    JOB is cluster:user/run, or the run alone, or a scheduler's id. The watch must have seen it already.
    """
    from midwatch.agents.acts import known_job, tell_act
    from midwatch.agents.executor.arming import everything_disarmed, lift_disarm_all, mark_job

    if everything == bool(job):
        raise UsageError("name a job, or give --all", where="midwatch arm", remedy="midwatch arm JOB")
    if everything:
        lifted = lift_disarm_all(settings.state_directory)
        click.echo(
            "`disarm --all` is undone; each job is armed or not as before"
            if lifted
            else "`disarm --all` was not in force"
        )
        return
    if everything_disarmed(settings.state_directory):
        raise UsageError(
            "`midwatch disarm --all` is in force",
            where="midwatch arm",
            remedy="undo that first: midwatch arm --all",
        )
    name = known_job(settings, job or "", now_ms())
    mark = mark_job(settings.state_directory, name, armed=True, at=now_ms() / 1000)
    tell_act(settings, mark, "arm")
    click.echo(f"{name} is armed")
    if not settings.armed:
        click.echo("the watch itself may be in observe mode: `midwatch doctor` shows its mode", err=True)
