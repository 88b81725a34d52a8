"""Shell: the owner of a partition writes into it from where on another bundle is in force."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping

from midwatch.agents.rulesets.reload.activation import is_due
from midwatch.agents.rulesets.reload.follower import Follower
from midwatch.streams.records import Activation, codec
from midwatch.streams.worker.app import App
from midwatch.streams.worker.stateful import StatefulAgent
from midwatch.streams.worker.tables.batch import NOW

_LOOK_EVERY_S = 0.1
_AGAIN_S = 3600.0
"""When to write an activation again that the fold has not reached. A repeat changes nothing."""
_log = logging.getLogger(__name__)


def follow(app: App, agent: StatefulAgent, follower: Follower) -> None:
    """Writes every bundle that comes into force into the agent's partitions, while the app runs."""

    async def start() -> None:
        follower.start()

    app.before_start.append(start)
    app.accompany(ActivationWriter(app, agent, follower).run)


class ActivationWriter:
    """Writes an activation into each owned partition whose state has an earlier one. A task of the app."""

    def __init__(self, app: App, agent: StatefulAgent, follower: Follower) -> None:
        self._app = app
        self._agent = agent
        self._follower = follower
        self._written: dict[int, tuple[int, float]] = {}

    async def run(self) -> None:
        """Runs until the app stops. A failed send crashes the worker, as every send does."""
        while not self._app.should_stop:
            await asyncio.sleep(_LOOK_EVERY_S)
            if not self._app.rebalancing:
                owned = tuple(self._agent.owned())
                self._written = {p: written for p, written in self._written.items() if p in owned}
                for partition in owned:
                    await self._look(partition)

    async def _look(self, partition: int) -> None:
        current = self._follower.current
        if current is None or partition in self._agent.stopped:
            return
        if self._agent.next_offset(partition) is None:
            return
        fold_state, shell_state = self._agent.table.partition_state(partition)
        if not is_due(fold_state, current.offset, _now_ms(shell_state)):
            return
        offset, at = self._written.get(partition, (-1, 0.0))
        if offset == current.offset and time.monotonic() - at < _AGAIN_S:
            return
        self._written[partition] = current.offset, time.monotonic()
        value = codec.encode(Activation(current.in_force.bundle, current.offset))
        await (await self._app.producer.send(self._agent.topic, None, value, partition, None, None))
        _log.info("bundle %s is activated in %s/%d", current.in_force.bundle, self._agent.topic, partition)


def _now_ms(shell_state: Mapping[bytes, bytes]) -> int:
    return int(shell_state.get(NOW, b"0"))
