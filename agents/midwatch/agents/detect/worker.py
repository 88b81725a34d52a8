"""The detect agent: folds the topic `events` into incidents and findings. Redis holds the state of a job."""

from __future__ import annotations

from typing import NoReturn

from midwatch.agents.detect.fold import DetectFold
from midwatch.agents.detect.metrics import DetectMetrics
from midwatch.agents.rulesets.bundles import limits_of
from midwatch.agents.rulesets.reload.activations import follow
from midwatch.agents.rulesets.reload.follower import Follower
from midwatch.streams.services.partitioner import partition_of
from midwatch.streams.settings.schema import Settings
from midwatch.streams.worker.app import App, create_app
from midwatch.streams.worker.readiness import ready_file
from midwatch.streams.worker.running import run as run_app
from midwatch.streams.worker.stateful import stateful_agent


def build(settings: Settings) -> App:
    """The app of one detect worker."""
    topics, partitions = settings.topic_names, settings.topics.partitions.events
    app = create_app(settings, f"{settings.topics.prefix}.detect")
    follower = Follower(settings, app.counters)
    fold = DetectFold(
        limits=limits_of(settings),
        incidents=topics.incidents,
        owner_of=lambda key: partition_of(key, partitions),
        contents=follower.contents,
    )
    agent = stateful_agent(app, fold, topic=topics.events, fetch=follower.fetch)
    if app.telemetry is not None:
        agent.observer = DetectMetrics(app, agent, app.telemetry.meter).landed
    follow(app, agent, follower)
    return app


def run(settings: Settings) -> NoReturn:
    """Run until SIGTERM. It renews its readiness file after every rebalance."""
    run_app(build(settings), ready_file=ready_file(settings.state_directory, "detect"))
