"""Replay as a person gets it without options, compiled once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from midwatch.agents.bundles import watched_rules
from midwatch.agents.decision import Rulebook
from midwatch.agents.incident.limits import Limits
from midwatch.agents.policies.loader import load_policy
from midwatch.agents.replay.logs import LogFile
from midwatch.agents.replay.run import Replayed, replay

Watch = Callable[[str], Replayed]


@pytest.fixture(scope="session")
def watch() -> Watch:
    """From the text of a log to what is said of it."""
    watched = watched_rules(("default",), scan=False)
    policy = load_policy("verdict")
    book = Rulebook({policy.name: policy}, sign=lambda command: command, default_policy=policy.name)

    def replayed(log: str) -> Replayed:
        return replay("replay:file/log", [LogFile("log", log.encode(), 0.0)], watched, book, Limits())

    return replayed
