"""Shell: the owner of a partition says in it from where on another bundle is in force."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping

from midwatch.agents.rulesets.reload.activation import is_wanted
from midwatch.agents.rulesets.reload.follower import Follower
from midwatch.streams.records import Activation, codec
from midwatch.streams.worker.app import App
from midwatch.streams.worker.stateful import StatefulAgent
from midwatch.streams.worker.tables.batch import NOW

_LOOK_EVERY_S = 0.1
_AGAIN_S = 3600.0
"""What was written stands in the log, however long the fold takes to come to it; a repeat changes nothing."""
_log = logging.getLogger(__name__)


def follow(app: App, agent: StatefulAgent, follower: Follower) -> None:
    """Let the agent's partitions know of every bundle that comes into force, while the app runs."""

    async def start() -> None:
        follower.start()

    app.before_start.append(start)
    app.accompany(ActivationWriter(app, agent, follower).run)


class ActivationWriter:
    """Writes an activation into each owned partition whose state has a lower one. A task of the app."""

    def __init__(self, app: App, agent: StatefulAgent, follower: Follower) -> None:
        self._app = app
        self._agent = agent
        self._follower = follower
        self._written: dict[int, tuple[int, float]] = {}

    async def run(self) -> None:
        """What cannot be sent crashes the worker, as every send does."""
        while not self._app.should_stop:
            await asyncio.sleep(_LOOK_EVERY_S)
            if not self._app.rebalancing:
                owned = tuple(self._agent.owned())
                self._written = {p: written for p, written in self._written.items() if p in owned}
                for partition in owned:
                    await self._look(partition)

    async def _look(self, partition: int) -> None:
        standing = self._follower.standing
        if standing is None or partition in self._agent.stopped:
            return
        if self._agent.next_offset(partition) is None:
            return
        state, own = self._agent.table.partition_state(partition)
        if not is_wanted(state, standing.offset, _now_ms(own)):
            return
        offset, at = self._written.get(partition, (-1, 0.0))
        if offset == standing.offset and time.monotonic() - at < _AGAIN_S:
            return
        self._written[partition] = standing.offset, time.monotonic()
        value = codec.encode(Activation(standing.said.bundle, standing.offset))
        await (await self._app.producer.send(self._agent.topic, None, value, partition, None, None))
        _log.info("bundle %s is activated in %s/%d", standing.said.bundle, self._agent.topic, partition)


def _now_ms(own: Mapping[bytes, bytes]) -> int:
    return int(own.get(NOW, b"0"))
