"""A test message, by which a person sees that a channel works."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from midwatch.agents.messages.channels.base import Channel
from midwatch.agents.messages.delivery.lanes import Lanes
from midwatch.agents.messages.notice import Notice


def trial(cluster: str, at_ms: int) -> Notice:
    """The test message of an installation."""
    return Notice(
        key=f"{cluster}/test",
        number=1,
        group=f"{cluster}/test",
        state="opened",
        severity="info",
        job=cluster,
        title=f"a test message of the cluster {cluster}",
        at_ms=at_ms,
        what="Nothing happened: somebody tries this channel.",
        why="It was sent by `midwatch messages test`.",
        done="Nothing.",
        look="midwatch doctor",
    )


async def try_channels(
    channels: Mapping[str, Channel], cluster: str, at_ms: int, answer_s: float
) -> dict[str, str | None]:
    """Send the test message on all channels at once. By channel: None, or why it was not taken."""
    lanes, notice = Lanes(channels, answer_s=answer_s), trial(cluster, at_ms)
    refused = await asyncio.gather(*(lanes.attempt(name, notice) for name in channels))
    return {name: each.reason if each else None for name, each in zip(channels, refused, strict=True)}
