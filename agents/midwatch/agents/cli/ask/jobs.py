"""`midwatch jobs`: the jobs that are watched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from midwatch.agents.cli.ask.asking import (
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
    found = sorted(told.stories.values(), key=lambda story: (story.standing is None, story.job))
    acting = {story.job: who_armed(story, settings.state_directory) for story in found}
    if as_json:
        print_json(
            {
                "jobs": [
                    {
                        "job": story.job,
                        "state": story.state_at(now),
                        "armed": acting[story.job].armed,
                        "armed_reason": acting[story.job].reason,
                        "attempt": story.latest.number if story.latest else None,
                        "last_step": story.last_step,
                        "last_beat_ms": story.last_beat_ms,
                        "standing": story.standing.id if story.standing else None,
                        "blind": story.blind.detail if story.blind else None,
                    }
                    for story in found
                ],
                "unreadable": told.unreadable,
            }
        )
    elif not found:
        click.echo("no job gave a sign: start one with `midwatch run -- …`, or ship its logs", err=True)
    else:
        from midwatch.agents.cli.printing import console, job_rows

        out = console()
        for row in job_rows([(story, acting[story.job]) for story in found], now):
            out.print(row)
        if not settings.armed and any(each.armed for each in acting.values()):
            click.echo("by these settings the watch observes: it acts for none (watch.mode)", err=True)
    return 1 if any(story.standing for story in found) else 0
