"""`midwatch incidents [JOB]`: attempts that ended or hang, with their verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from midwatch.agents.cli.ask.shared import (
    looking_back,
    patience_option,
    print_json,
    since_option,
    warn_unreadable,
)
from midwatch.agents.cli.options import json_option, with_settings
from midwatch.streams.host.clock import now_ms

if TYPE_CHECKING:
    from midwatch.streams.settings.schema import Settings


@click.command()
@click.argument("job", required=False)
@click.option("--withdrawn", is_flag=True, help="List withdrawn incidents too.")
@since_option
@json_option
@patience_option
@with_settings(connected=True)
def incidents(
    *, job: str | None, withdrawn: bool, since: str, as_json: bool, patience: float, settings: Settings
) -> int:
    """List incidents, the latest first.

    Exit code 1: a job's latest attempt has an incident, and midwatch has not restarted the job.
    """
    from midwatch.agents.query.inquiry import ask_all, ask_job

    now = now_ms()
    if job is None:
        answer = ask_all(settings, looking_back(since, now), now, patience)
        timelines, unreadable = list(answer.timelines.values()), answer.unreadable
    else:
        timeline, unreadable = ask_job(settings, job, now, patience)
        timelines = [timeline]
    warn_unreadable(unreadable)
    listed = [
        (attempt.incident, timeline.standing is attempt.incident, attempt)
        for timeline in timelines
        for attempt in timeline.attempts
        if attempt.incident and (withdrawn or attempt.incident.state != "withdrawn")
    ]
    listed.sort(key=lambda row: -row[0].opened_ms)
    if as_json:
        print_json(
            {
                "incidents": [{"stands": stands, "incident": incident} for incident, stands, _ in listed],
                "unreadable": unreadable,
            }
        )
    elif not listed:
        click.echo("no incident", err=True)
    else:
        from midwatch.agents.cli.printing import console, incident_rows

        out = console()
        for row in incident_rows(listed):
            out.print(row)
    return 1 if any(stands for _, stands, _ in listed) else 0
