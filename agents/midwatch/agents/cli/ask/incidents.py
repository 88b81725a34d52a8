"""`midwatch incidents [JOB]`: attempts that ended or hang, with their verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from midwatch.agents.cli.ask.shared import print_json, print_rows, with_timelines

if TYPE_CHECKING:
    from midwatch.agents.query.timeline import Timeline


@click.command()
@click.option("--withdrawn", is_flag=True, help="List withdrawn incidents too.")
@with_timelines
def incidents(*, timelines: list[Timeline], unreadable: int, as_json: bool, withdrawn: bool) -> int:
    """List incidents, the latest first.

    Exit code 1: a job's latest attempt has an incident, and midwatch has not restarted the job.
    """
    listed = [
        (attempt.incident, timeline.standing is attempt.incident, attempt)
        for timeline in timelines
        for attempt in timeline.attempts
        if attempt.incident and (withdrawn or attempt.incident.state != "withdrawn")
    ]
    listed.sort(key=lambda row: -row[0].opened_ms)
    if as_json:
        rows = [{"stands": stands, "incident": incident} for incident, stands, _ in listed]
        print_json({"incidents": rows, "unreadable": unreadable})
    else:
        from midwatch.agents.cli.printing import incident_rows

        print_rows(incident_rows(listed) if listed else (), "no incident")
    return 1 if any(stands for _, stands, _ in listed) else 0
