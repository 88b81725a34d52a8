"""`midwatch messages test`: sends a message on the configured channels, to see that it arrives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from midwatch.agents.cli.options import json_option, with_settings

if TYPE_CHECKING:
    from midwatch.streams.settings.schema import Settings


@click.group()
def messages() -> None:
    """Messages to people: try the channels that the settings name."""


@messages.command()
@click.option("--channel", metavar="NAME", help="Only this channel, for example slack.")
@json_option
@with_settings()
def test(channel: str | None, as_json: bool, settings: Settings) -> int:
    """Send a test message on each channel, once, and say which took it. Needs neither Kafka nor Redis."""
    import asyncio
    import json

    from midwatch.agents.messages.configured import channels_of
    from midwatch.agents.messages.trial import try_channels
    from midwatch.streams.errors import UsageError
    from midwatch.streams.host.clock import now_ms

    channels = channels_of(settings)
    if channel is not None and channel not in channels:
        raise UsageError(
            "the settings name no such channel",
            where=channel,
            remedy=f"they name: {', '.join(channels)}" if channels else "docs/messages.md shows each",
        )
    chosen = {name: made for name, made in channels.items() if channel in (None, name)}
    if not chosen:
        raise UsageError(
            "the settings name no channel", where="messages", remedy="docs/messages.md shows each of them"
        )
    results = asyncio.run(try_channels(chosen, settings.cluster, now_ms(), settings.messages.timeout))
    if as_json:
        click.echo(json.dumps({"version": 1, "channels": results}))
    else:
        for name, refused in results.items():
            click.echo(f"{name}: took it" if refused is None else f"{name}: {refused}")
    return 4 if any(results.values()) else 0
