"""The decide agent: policies turn settled incidents into decisions and signed commands; state in Redis."""

from __future__ import annotations

from typing import NoReturn

from midwatch.agents.decide.decision import Rulebook
from midwatch.agents.decide.fold import DecideFold
from midwatch.agents.decide.metrics import DecideMetrics
from midwatch.agents.rulesets.bundles import policies_of
from midwatch.agents.rulesets.reload.activations import follow
from midwatch.agents.rulesets.reload.follower import Follower
from midwatch.agents.signing import ensure_keys
from midwatch.streams.settings.schema import Settings
from midwatch.streams.worker.app import App, create_app
from midwatch.streams.worker.readiness import ready_file
from midwatch.streams.worker.running import run as run_app
from midwatch.streams.worker.stateful import stateful_agent


def build(settings: Settings) -> App:
    """The app of one decide worker, with the key that signs commands."""
    topics = settings.topic_names
    book = Rulebook(
        policies=policies_of(settings),
        sign=ensure_keys(settings.state_directory).sign,
        default_policy=settings.policy,
        acting=settings.armed,
    )
    app = create_app(settings, f"{settings.topics.prefix}.decide")
    follower = Follower(settings, app.counters)
    fold = DecideFold(book, topics.decisions, topics.commands, follower.contents)
    agent = stateful_agent(app, fold, topic=topics.incidents, marked=True, fetch=follower.fetch)
    if app.telemetry is not None:
        agent.observer = DecideMetrics(app, agent, app.telemetry.meter).landed
    follow(app, agent, follower)
    return app


def run(settings: Settings) -> NoReturn:
    """Runs until SIGTERM. Renews its ready file after every rebalance."""
    run_app(build(settings), ready_file=ready_file(settings.state_directory, "decide"))
