"""Which channels a notice goes to. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from midwatch.agents.messages.notice import Notice, as_severe
from midwatch.streams.settings.kinds import MessageSeverity

CHANNEL = "channel/"
"""The start of the outbox's name for a channel. No topic has a slash in its name."""


@dataclass(frozen=True, slots=True)
class Route:
    """A channel, and how severe a notice must be to go there."""

    channel: str
    least: MessageSeverity = "info"


def routed(notice: Notice, routes: Sequence[Route]) -> tuple[str, ...]:
    """The names of the notice's channels, in the order of the routes."""
    return tuple(route.channel for route in routes if as_severe(notice.severity, route.least))
