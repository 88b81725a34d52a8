"""`midwatch why JOB`: what happened to a job, why, and the reason of each decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from midwatch.agents.cli.ask.shared import patience_option, print_json, timeline_json, warn_unreadable
from midwatch.agents.cli.options import json_option, with_settings
from midwatch.streams.host.clock import now_ms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from midwatch.agents.query.timeline import Timeline
    from midwatch.streams.settings.schema import Settings


@click.command()
@click.argument("job")
@json_option
@patience_option
@with_settings(connected=True)
def why(job: str, as_json: bool, patience: float, settings: Settings) -> int:
    """Show what happened to JOB: verdict, root line, evidence, every decision with its reason.

    JOB is cluster:user/run, or the run alone, or a scheduler's id. Exit code 1: the latest attempt has an
    incident, and midwatch has not restarted the job.
    """
    from midwatch.agents.query.inquiry import ask_job

    now = now_ms()
    timeline, unreadable = ask_job(settings, job, now, patience)
    warn_unreadable(unreadable)
    if as_json:
        print_json({**timeline_json(timeline, now), "unreadable": unreadable})
    else:
        from midwatch.agents.cli.printing import console, timeline_text

        out = console()
        for line in timeline_text(timeline, now):
            out.print(line)
        for text in _advice(timeline):
            out.print(text)
    return 1 if timeline.standing else 0


def _advice(timeline: Timeline) -> Iterator[str]:
    """What failed, and what a person may change; nothing for a job that needs nobody."""
    from midwatch.agents.activity import printable
    from midwatch.agents.rescue.advice import blame, change_for

    incident = timeline.standing
    if incident is None:
        return
    if sentence := blame(incident.verdict):
        yield f"\nblame   {sentence}"
    if change := change_for(timeline):
        key = printable(change.key)
        yield f"change  {key} in {printable(change.file)}, {change.old} → {change.new}:"
        yield f"        midwatch resume {printable(timeline.job)} --set {key}={change.new}"
