"""What a channel is."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from midwatch.agents.messages.notice import Notice


class ChannelRefused(Exception):
    """The channel did not take a notice. `lasting`: the same try would fail again, as with a wrong address.

    `pause_s`: how long the channel asks to be left alone.
    """

    def __init__(self, reason: str, *, lasting: bool = False, pause_s: float | None = None) -> None:
        super().__init__(reason)
        self.lasting = lasting
        self.pause_s = pause_s


@runtime_checkable
class Channel(Protocol):
    """One way to people."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """Texts that no log may show."""
        ...

    async def send(self, notice: Notice) -> None:
        """Deliver the notice, and return once it is taken over there.

        It is called again after a crash or a failure: use `notice.id` so that a repeat is recognised. It must
        not block the event loop, and it must stop when it is cancelled. It must escape the notice's texts.

        Raises:
            ChannelRefused: the other side said no. Any other exception counts as a failure that may pass.
        """
        ...
