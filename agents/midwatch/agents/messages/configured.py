"""Shell: the channels that the settings name, ours and foreign ones, and their routes."""

from __future__ import annotations

from typing import Any

from midwatch.agents.messages.channels import CHANNELS
from midwatch.agents.messages.channels.base import Channel
from midwatch.agents.messages.routing import Route
from midwatch.agents.rulesets.extensions import PAGE, loaded, wrong
from midwatch.streams.settings.file import with_message_secrets
from midwatch.streams.settings.schema import Settings


def channels_of(settings: Settings) -> dict[str, Channel]:
    """The channels by name, in the order in which one is told that another fails.

    Raises:
        ConfigurationError: a channel lacks its package, a secret cannot be read, or a foreign channel is not
            as it must be.
    """
    settings = with_message_secrets(settings)
    made = {name: make(settings.messages) for name, make in CHANNELS.items()}
    found = {name: channel for name, channel in made.items() if channel is not None}
    return found | {name: _foreign(name) for name in settings.extensions.channels}


def routes_of(settings: Settings, names: tuple[str, ...]) -> tuple[Route, ...]:
    """Where notices go, by how severe they are; a foreign channel gets all."""
    sections = {name: getattr(settings.messages, name, None) for name in names}
    return tuple(
        Route(name, section.severity if section is not None else "info") for name, section in sections.items()
    )


def _foreign(name: str) -> Channel:
    make = loaded("channels", name, CHANNELS)
    if not callable(make):
        raise wrong("channels", f"{name!r} names nothing that makes a channel", f"see {PAGE}")
    try:
        made: Any = make()
    except Exception as error:  # whatever a stranger's module raises
        why = f"its channel cannot be made: {type(error).__name__}: {error}"
        raise wrong("channels", f"{name!r}: {why}", "ask its author, or take the name out") from error
    if not isinstance(made, Channel):
        raise wrong("channels", f"{name!r} lacks `secrets` or `send`", f"{PAGE} says what one must have")
    return made
