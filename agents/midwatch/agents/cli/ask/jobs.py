"""`midwatch jobs`: the jobs that are watched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from midwatch.agents.cli.ask.shared import (
    looking_back,
    patience_option,
    print_json,
    say_unreadable,
    since_option,
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
    """List jobs that were judged lately or live now. Exit code 1 if an incident of any stands."""
    from midwatch.agents.query.inquiry import ask_all, who_armed

    now = now_ms()
    told = ask_all(settings, looking_back(since, now), now, patience)
    say_unreadable(told.unreadable)
    found = sorted(told.timelines.values(), key=lambda timeline: (timeline.standing is None, timeline.job))
    acting = {timeline.job: who_armed(timeline, settings.state_directory) for timeline in found}
    if as_json:
        print_json(
            {
                "jobs": [
                    {
                        "job": timeline.job,
                        "state": timeline.state_at(now),
                        "armed": acting[timeline.job].armed,
                        "armed_reason": acting[timeline.job].reason,
                        "attempt": timeline.latest.number if timeline.latest else None,
                        "last_step": timeline.last_step,
                        "last_beat_ms": timeline.last_heartbeat_ms,
                        "standing": timeline.standing.id if timeline.standing else None,
                        "blind": timeline.blind.detail if timeline.blind else None,
                    }
                    for timeline in found
                ],
                "unreadable": told.unreadable,
            }
        )
    elif not found:
        click.echo("no job gave a sign: start one with `midwatch run -- …`, or ship its logs", err=True)
    else:
        from midwatch.agents.cli.printing import console, job_rows

        out = console()
        for row in job_rows([(timeline, acting[timeline.job]) for timeline in found], now):
            out.print(row)
        if not settings.armed and any(each.armed for each in acting.values()):
            click.echo("by these settings the watch observes: it acts for none (watch.mode)", err=True)
    return 1 if any(timeline.standing for timeline in found) else 0
