"""`midwatch why JOB`: what happened, why, and why (not) something was done about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from midwatch.agents.cli.ask.shared import patience_option, print_json, say_unreadable, timeline_json
from midwatch.agents.cli.options import json_option, with_settings
from midwatch.streams.host.clock import now_ms

if TYPE_CHECKING:
    from midwatch.streams.settings.schema import Settings


@click.command()
@click.argument("job")
@json_option
@patience_option
@with_settings(connected=True)
def why(job: str, as_json: bool, patience: float, settings: Settings) -> int:
    """Say what happened to JOB: verdict, root line, evidence, every decision with its reason.

    JOB is cluster:user/run, or the run alone, or a scheduler's id. Exit code 1 if an incident stands.
    """
    from midwatch.agents.query.inquiry import ask_job

    now = now_ms()
    told, unreadable = ask_job(settings, job, now, patience)
    say_unreadable(unreadable)
    if as_json:
        print_json({**timeline_json(told, now), "unreadable": unreadable})
    else:
        from midwatch.agents.cli.printing import console, timeline_text

        out = console()
        for line in timeline_text(told, now):
            out.print(line)
    return 1 if told.standing else 0
