"""Options and output that the read commands share."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from midwatch.agents.cli.options import Handler, json_option, with_settings
from midwatch.streams.host.clock import now_ms

if TYPE_CHECKING:
    from rich.text import Text

    from midwatch.agents.query.timeline import Timeline
    from midwatch.streams.settings.schema import Settings

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


def with_timelines(handler: Handler) -> Handler:
    """Gives the command `timelines`, of one job or of all lately, and `unreadable`, with their options."""

    @click.argument("job", required=False)
    @since_option
    @json_option
    @patience_option
    @with_settings(connected=True)
    @functools.wraps(handler)
    def command(*, job: str | None, since: str, patience: float, settings: Settings, **options: Any) -> Any:
        from midwatch.agents.query.inquiry import ask_all, ask_job

        now = now_ms()
        if job is None:
            answer = ask_all(settings, looking_back(since, now), now, patience)
            timelines, unreadable = list(answer.timelines.values()), answer.unreadable
        else:
            timeline, unreadable = ask_job(settings, job, now, patience)
            timelines = [timeline]
        warn_unreadable(unreadable)
        return handler(timelines=timelines, unreadable=unreadable, **options)

    return command


def print_rows(rows: Iterable[Text], empty: str) -> None:
    """Prints the rows of a table on standard output, or `empty` on standard error if there are none."""
    from midwatch.agents.cli.printing import console

    found = list(rows)
    out = console()
    for row in found:
        out.print(row)
    if not found:
        click.echo(empty, err=True)


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
    steps = ((step, timeline.line_of(step)) for step in timeline.steps)
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
