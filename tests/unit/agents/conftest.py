"""Replay as a person gets it without options, compiled once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from midwatch.agents.decide.decision import Rulebook
from midwatch.agents.policies.loader import load_policy
from midwatch.agents.replay.job_replay import Replayed, replay
from midwatch.agents.replay.log_files import LogFile
from midwatch.agents.rulesets.bundles import watched_rules
from midwatch.rules.detectors.limits import WatchLimits

Watch = Callable[..., Replayed]


@pytest.fixture(scope="session")
def watch() -> Watch:
    """From the text of a log, or of each of several, to what is said of the run."""
    watched = watched_rules(("default",), scan=False)
    policy = load_policy("verdict")
    book = Rulebook({policy.name: policy}, sign=lambda command: command, default_policy=policy.name)

    def replayed(*logs: str) -> Replayed:
        files = [LogFile(f"log{number or ''}", log.encode(), 0.0) for number, log in enumerate(logs)]
        return replay("replay:file/log", files, watched, book, WatchLimits())

    return replayed
