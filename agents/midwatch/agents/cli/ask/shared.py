"""Options and output that the read commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from midwatch.agents.query.timeline import Timeline

patience_option = click.option(
    "--patience",
    type=click.FloatRange(1, 3600),
    default=30.0,
    show_default=True,
    help="Seconds to wait for Kafka.",
)
since_option = click.option(
    "--since",
    metavar="DURATION",
    default="7d",
    show_default=True,
    help="How far to look back: 10m, 24h, 30d.",
)


def looking_back(since: str, now: int) -> int:
    """The start of the time that `--since` covers, in ms since the epoch."""
    from pathlib import Path

    from midwatch.streams.errors import UsageError
    from midwatch.streams.settings.kinds import Given, WrongValue, duration

    try:
        seconds = duration(1).read(Given(since, Path(), typed=False))
    except WrongValue as error:
        raise UsageError(error.what, where="--since", remedy=error.remedy) from error
    return now - int(seconds * 1000)


def print_json(body: dict[str, Any]) -> None:
    """Prints one object on standard output, with its version first."""
    import msgspec

    text = msgspec.json.encode({"version": 1, **body})
    click.echo(msgspec.json.format(text, indent=1))


def warn_unreadable(count: int) -> None:
    """Warns on standard error that the answer may be incomplete."""
    if count:
        click.echo(
            f"warning: this midwatch cannot read {count} record(s) and leaves them out; upgrade it",
            err=True,
        )


def timeline_json(timeline: Timeline, now: int) -> dict[str, Any]:
    """A timeline as JSON: records as the topics hold them, and the lines that `why` shows of them."""
    from midwatch.agents import activity

    steps = (
        (step, activity.line(step.record, step.at_ms, command=timeline.command_of(step.record)))
        for step in timeline.steps
    )
    return {
        "job": timeline.job,
        "state": timeline.state_at(now),
        "standing": timeline.standing.id if timeline.standing else None,
        "blind": timeline.blind.detail if timeline.blind else None,
        "last_beat_ms": timeline.last_heartbeat_ms,
        "last_step": timeline.last_step,
        "nodes": sorted(timeline.nodes),
        "spec": timeline.spec,
        "scheduler": timeline.last_fact,
        "attempts": [
            {
                "attempt": attempt.number,
                "incident": attempt.incident,
                "findings": attempt.findings,
                "decisions": attempt.decisions,
                "commands": attempt.commands,
                "outcomes": [outcome for _, outcome in attempt.outcomes],
            }
            for attempt in timeline.attempts
        ],
        "steps": [{"at_ms": step.at_ms, "line": line} for step, line in steps if line],
    }
