"""`midwatch jobs`: the jobs under the watch."""

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
@since_option
@json_option
@patience_option
@with_settings(connected=True)
def jobs(since: str, as_json: bool, patience: float, settings: Settings) -> int:
    """List jobs that live now or had an incident lately.

    Exit code 1: a job's latest attempt has an incident, and midwatch has not restarted the job.
    """
    from midwatch.agents.query.inquiry import ask_all, who_armed

    now = now_ms()
    answer = ask_all(settings, looking_back(since, now), now, patience)
    warn_unreadable(answer.unreadable)
    timelines = sorted(
        answer.timelines.values(), key=lambda timeline: (timeline.standing is None, timeline.job)
    )
    armings = {timeline.job: who_armed(timeline, settings.state_directory) for timeline in timelines}
    if as_json:
        print_json(
            {
                "jobs": [
                    {
                        "job": timeline.job,
                        "state": timeline.state_at(now),
                        "armed": armings[timeline.job].armed,
                        "armed_reason": armings[timeline.job].reason,
                        "attempt": timeline.latest.number if timeline.latest else None,
                        "last_step": timeline.last_step,
                        "last_beat_ms": timeline.last_heartbeat_ms,
                        "standing": timeline.standing.id if timeline.standing else None,
                        "blind": timeline.blind.detail if timeline.blind else None,
                        "resumed": timeline.resumed.detail if timeline.resumed else None,
                    }
                    for timeline in timelines
                ],
                "unreadable": answer.unreadable,
            }
        )
    elif not timelines:
        click.echo("no job found: start one with `midwatch run -- …`, or ship its logs", err=True)
    else:
        from midwatch.agents.cli.printing import console, job_rows

        out = console()
        for row in job_rows([(timeline, armings[timeline.job]) for timeline in timelines], now):
            out.print(row)
        if not settings.armed and any(arming.armed for arming in armings.values()):
            click.echo("these settings say `watch.mode: observe`: midwatch acts for no job", err=True)
    return 1 if any(timeline.standing for timeline in timelines) else 0
