"""The tests' own supervisor: it starts a dead worker again, and does not keep quiet about it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from integration.chain.installation import installation
from midwatch.agents.local.embedded.stack import Endpoints
from processes import wait_for

SLEEPER = (sys.executable, "-c", "import signal; signal.pause()")


def test_a_worker_that_died_by_itself_fails_the_test_and_one_that_was_killed_does_not(
    stack: Endpoints, tmp_path: Path
) -> None:
    with pytest.raises(AssertionError, match=r"^match ended with status 3 by itself"):
        _kill_one_and_lose_one(stack, tmp_path / "watch")


def _kill_one_and_lose_one(stack: Endpoints, directory: Path) -> None:
    with installation(directory, stack) as made:
        made.start("decide", *SLEEPER)
        first = made.processes["decide"]
        made.kill("decide")
        wait_for(lambda: made.processes["decide"] is not first, "it is started again")
        assert made.died == []
        made.start("match", sys.executable, "-c", "raise SystemExit(3)")
        wait_for(lambda: len(made.died) == 2, "it dies, is started again, and dies again")
