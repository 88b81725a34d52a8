"""All other services, by Apprise: one address for each, such as `discord://...` or `pagerduty://...`."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from midwatch.agents.messages.channels.base import ChannelRefused
from midwatch.agents.messages.channels.escaping import plain
from midwatch.agents.messages.channels.in_thread import in_thread
from midwatch.agents.messages.notice import Notice
from midwatch.streams.errors import ConfigurationError

_TYPES = {"critical": "failure", "warning": "warning", "info": "info"}


@dataclass(frozen=True, slots=True)
class AppriseChannel:
    """Tells each address. Apprise says only whether all took it, so a failure repeats it to all."""

    urls: tuple[str, ...]

    def __post_init__(self) -> None:
        """Raises ConfigurationError if Apprise is not installed, or does not know an address."""
        try:
            import apprise
        except ImportError as error:
            raise ConfigurationError(
                "the package apprise is not installed",
                where="messages.apprise",
                remedy="pip install 'midwatch[notify]'",
            ) from error
        logging.getLogger("apprise").setLevel(logging.CRITICAL)  # it names addresses, which hold tokens
        for number, url in enumerate(self.urls, 1):
            if apprise.Apprise.instantiate(url) is None:
                raise ConfigurationError(
                    f"Apprise does not know address {number}",
                    where="messages.apprise.urls",
                    remedy="write each address as Apprise documents it, one a line",
                )

    @property
    def secrets(self) -> tuple[str, ...]:
        """The addresses hold tokens."""
        return self.urls

    async def send(self, notice: Notice) -> None:
        """Tell all addresses, in a thread."""
        if not await in_thread(lambda: self._notify(notice)):
            raise ChannelRefused("one of the services of Apprise did not take it")

    def _notify(self, notice: Notice) -> bool:
        import apprise

        services = apprise.Apprise()
        services.add(list(self.urls))
        kind = "success" if notice.state == "resolved" else _TYPES[notice.severity]
        return bool(
            services.notify(
                title=plain(notice.heading), body=plain(notice.body()), notify_type=kind, body_format="text"
            )
        )
