"""One lane for each channel: its notices in turn, each tried until the channel, or another one, takes it.

A lane that waits holds up no other lane. Where a channel fails for long, its lane tells the notice on the
other channels, with the reason.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from midwatch.agents.messages.channels.base import Channel, ChannelRefused
from midwatch.agents.messages.notice import Notice, one_line
from midwatch.agents.messages.retry import NextStep, Patience, Refused, next_step

log = logging.getLogger(__name__)

Outcome = Literal["done", "refused", "failed"]
"""Of one try: the channel took the notice or not; `failed`: no channel takes it, and it is given up."""

_REASON_LIMIT = 300


@dataclass(slots=True)
class Waiting:
    """One notice on its way. `wanted`: this process still has to deliver it.

    `since`: the first refusal (our monotonic clock).
    """

    notice: Notice
    wanted: Callable[[], bool]
    delivered: Callable[[], Awaitable[None]]
    tries: int = 0
    since: float | None = None


@dataclass(slots=True)
class Lane:
    """The notices of one channel, and since when it fails (None while it works; our monotonic clock)."""

    name: str
    queue: asyncio.Queue[Waiting] = field(default_factory=asyncio.Queue)
    failing_since: float | None = None


class Lanes:
    """All lanes. `answer_s` bounds one try."""

    def __init__(
        self, channels: Mapping[str, Channel], *, answer_s: float = 10.0, patience: Patience | None = None
    ) -> None:
        self._channels = channels
        self._answer_s = answer_s
        self._patience = patience or Patience()
        self._lanes: dict[str, Lane] = {}
        self._tasks: asyncio.TaskGroup | None = None
        self.observer: Callable[[str, Outcome], None] = lambda _channel, _outcome: None

    @property
    def failing(self) -> Mapping[str, bool]:
        """Each configured channel, and whether it refused the last notice that was meant for it."""
        lanes = {name: self._lanes.get(name) for name in self._channels}
        return {name: lane is not None and lane.failing_since is not None for name, lane in lanes.items()}

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """From now on lanes run, as tasks of this group. An error that nobody expected ends the group."""
        self._tasks = tasks

    def put(
        self,
        name: str,
        notice: Notice,
        *,
        wanted: Callable[[], bool],
        delivered: Callable[[], Awaitable[None]],
    ) -> None:
        """Queue a notice. `delivered` is called once a channel has it, or nobody takes it for too long."""
        lane = self._lanes.get(name)
        if lane is None:
            assert self._tasks is not None, "start comes first"  # noqa: S101 (for the type checker)
            lane = self._lanes[name] = Lane(name)
            self._tasks.create_task(self._run(lane))
        lane.queue.put_nowait(Waiting(notice, wanted, delivered))

    async def _run(self, lane: Lane) -> None:
        while True:
            waiting = await lane.queue.get()
            while waiting.wanted() and (again := await self._try(lane, waiting)) is not None:
                if again.lasting:
                    # It may be this notice that is refused, and not the channel: the others go on.
                    loop = asyncio.get_running_loop()
                    loop.call_later(again.pause_s, lane.queue.put_nowait, waiting)
                    break
                await asyncio.sleep(again.pause_s)

    async def _try(self, lane: Lane, waiting: Waiting) -> NextStep | None:
        """Try once. Returns None when the notice is done with, else when to try again."""
        refused = await self.attempt(lane.name, waiting.notice)
        if refused is None:
            if lane.failing_since is not None:
                log.info("the channel %s takes messages again", lane.name)
            lane.failing_since = None
            await waiting.delivered()
            return None
        now = time.monotonic()
        waiting.tries += 1
        waiting.since = waiting.since or now
        lane.failing_since = lane.failing_since or now
        failing_s, age_s = now - lane.failing_since, now - waiting.since
        step = next_step(refused, waiting.tries, failing_s, age_s, self._patience)
        log.warning(
            "the channel %s did not take message %s (try %d): %s",
            lane.name, waiting.notice.id, waiting.tries, refused.reason,
        )  # fmt: skip
        delivered = step.elsewhere and await self._elsewhere(lane.name, waiting.notice, refused)
        if not delivered and not step.give_up:
            return step
        if not delivered:
            log.error("nobody took message %s: %s", waiting.notice.id, waiting.notice.heading)
            self.observer(lane.name, "failed")
        await waiting.delivered()
        return None

    async def _elsewhere(self, failed: str, notice: Notice, refused: Refused) -> bool:
        """Tell it on each other channel until one takes it."""
        note = f"the channel {failed} does not take messages: {refused.reason}"
        for name in self._channels:
            if name != failed and await self.attempt(name, notice.with_note(note)) is None:
                log.warning("message %s was told on %s, because %s", notice.id, name, note)
                return True
        return False

    async def attempt(self, name: str, notice: Notice) -> Refused | None:
        """Send once. Returns None once the channel has it, else why it has not; secrets are taken out."""
        refused = await self._attempt(name, notice)
        self.observer(name, "refused" if refused else "done")
        return refused

    async def _attempt(self, name: str, notice: Notice) -> Refused | None:
        channel = self._channels.get(name)
        if channel is None:
            return Refused("the settings name no such channel", lasting=True)
        try:
            async with asyncio.timeout(self._answer_s):
                await channel.send(notice)
        except ChannelRefused as error:
            return Refused(_shown(channel, str(error)), error.lasting, error.pause_s)
        except TimeoutError:
            return Refused(f"no answer within {self._answer_s:g} s")
        except Exception as error:  # what a channel's library raises
            return Refused(_shown(channel, f"{type(error).__name__}: {error}"))
        return None


def _shown(channel: Channel, reason: str) -> str:
    for secret in channel.secrets:
        reason = reason.replace(secret, "***")
    return one_line(reason, _REASON_LIMIT)
