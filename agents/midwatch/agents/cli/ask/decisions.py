"""`midwatch decisions [JOB]`: every decision with its reason, also to do nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from midwatch.agents.cli.ask.shared import print_json, print_rows, with_timelines

if TYPE_CHECKING:
    from midwatch.agents.query.timeline import Timeline


@click.command()
@with_timelines
def decisions(*, timelines: list[Timeline], unreadable: int, as_json: bool) -> None:
    """List decisions with their reasons and near misses, the oldest first."""
    listed = [
        decision for timeline in timelines for attempt in timeline.attempts for decision in attempt.decisions
    ]
    listed.sort(key=lambda decision: decision.at_ms)
    if as_json:
        print_json({"decisions": listed, "unreadable": unreadable})
    else:
        from midwatch.agents.cli.printing import decision_rows

        print_rows(decision_rows(listed), "no decision")
