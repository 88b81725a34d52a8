"""What the read commands share: how long to wait, how to print JSON."""

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
    """The time that `--since` means."""
    from pathlib import Path

    from midwatch.streams.errors import UsageError
    from midwatch.streams.settings.kinds import Given, WrongValue, duration

    try:
        seconds = duration(1).read(Given(since, Path(), typed=False))
    except WrongValue as error:
        raise UsageError(error.what, where="--since", remedy=error.remedy) from error
    return now - int(seconds * 1000)


def print_json(body: dict[str, Any]) -> None:
    """One object on standard output, with its version first."""
    import msgspec

    text = msgspec.json.encode({"version": 1, **body})
    click.echo(msgspec.json.format(text, indent=1))


def say_unreadable(count: int) -> None:
    """Tells on standard error that the answer may lack something."""
    if count:
        click.echo(
            f"warning: {count} record(s) cannot be read by this midwatch and are left out; upgrade it",
            err=True,
        )


def timeline_json(told: Timeline, now: int) -> dict[str, Any]:
    """A story as JSON: records as they are written in the topics, with their lines beside them."""
    from midwatch.agents import activity

    steps = (
        (step, activity.line(step.record, step.at_ms, command=told.command_of(step.record)))
        for step in told.steps
    )
    return {
        "job": told.job,
        "state": told.state_at(now),
        "standing": told.standing.id if told.standing else None,
        "blind": told.blind.detail if told.blind else None,
        "last_beat_ms": told.last_heartbeat_ms,
        "last_step": told.last_step,
        "nodes": sorted(told.nodes),
        "spec": told.spec,
        "scheduler": told.last_fact,
        "attempts": [
            {
                "attempt": attempt.number,
                "incident": attempt.incident,
                "findings": attempt.findings,
                "decisions": attempt.decisions,
                "commands": attempt.commands,
                "outcomes": [outcome for _, outcome in attempt.outcomes],
            }
            for attempt in told.attempts
        ],
        "steps": [{"at_ms": step.at_ms, "line": line} for step, line in steps if line],
    }
