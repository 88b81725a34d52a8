"""The messages agent: what stands in `decisions` reaches people; state in Redis."""

from __future__ import annotations

import asyncio
from typing import NoReturn, cast

from midwatch.agents.messages.alarms import Pace
from midwatch.agents.messages.configured import channels_of, routes_of
from midwatch.agents.messages.delivery.first_start import begin_now
from midwatch.agents.messages.delivery.lanes import Lanes
from midwatch.agents.messages.delivery.metrics import export_lanes
from midwatch.agents.messages.delivery.outbox import MessagesTable
from midwatch.agents.messages.fold import MessagesFold
from midwatch.agents.messages.retry import Patience
from midwatch.streams.errors import ConfigurationError
from midwatch.streams.settings.schema import Settings
from midwatch.streams.worker.app import App, create_app
from midwatch.streams.worker.readiness import ready_file
from midwatch.streams.worker.running import run as run_app
from midwatch.streams.worker.stateful import stateful_agent


def build(settings: Settings) -> App:
    """The app of one messages worker.

    Raises:
        ConfigurationError: the settings name no channel, or one that cannot be made.
    """
    channels, given = channels_of(settings), settings.messages
    if not channels:
        raise ConfigurationError(
            "no channel is configured, so nobody would get a message",
            where="messages",
            remedy="name one, for example messages.slack.url_file; docs/messages.md shows each",
        )
    pace = Pace(int(given.wait * 1000), int(given.cooldown * 1000))
    fold = MessagesFold(routes_of(settings, tuple(channels)), pace)
    app = create_app(settings, f"{settings.topics.prefix}.messages")
    topic = settings.topic_names.decisions
    agent = stateful_agent(app, fold, topic=topic, marked=True, table_class=MessagesTable, sender_time=True)
    patience = Patience(given.elsewhere, given.give_up)
    lanes = Lanes(channels, answer_s=given.timeout, patience=patience)
    cast(MessagesTable, agent.table).outbox.lanes = lanes
    if app.telemetry is not None:
        export_lanes(app.telemetry.meter, lanes)

    async def first_start() -> None:
        await asyncio.to_thread(begin_now, settings, app.group, topic)

    app.before_start.append(first_start)
    return app


def run(settings: Settings) -> NoReturn:
    """Runs until SIGTERM. Renews its ready file after every rebalance."""
    run_app(build(settings), ready_file=ready_file(settings.state_directory, "messages"))
