"""`midwatch decisions [JOB]`: every decision with its reason, also to do nothing."""

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
@since_option
@json_option
@patience_option
@with_settings(connected=True)
def decisions(job: str | None, since: str, as_json: bool, patience: float, settings: Settings) -> None:
    """List decisions with their reasons and near misses, the oldest first."""
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
        decision for timeline in timelines for attempt in timeline.attempts for decision in attempt.decisions
    ]
    listed.sort(key=lambda decision: decision.at_ms)
    if as_json:
        print_json({"decisions": listed, "unreadable": unreadable})
    elif not listed:
        click.echo("no decision", err=True)
    else:
        from midwatch.agents.cli.printing import console, decision_rows

        out = console()
        for row in decision_rows(listed):
            out.print(row)
