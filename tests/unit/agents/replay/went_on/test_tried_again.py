"""A try that failed and a later one that succeeded: the program got over its failure."""

from __future__ import annotations

import pytest

from midwatch.agents.replay.reading.log_files import LogFile
from midwatch.agents.replay.went_on.tried_again import tried_again
from unit.agents.conftest import Watch

REFUSED = "RuntimeError: time-out of 9000ms while waiting for the simulator at toyhost:7\n"
LATER = "the toy drives to station 7\n" * 3


@pytest.mark.parametrize(
    ("failed", "worked", "over"),
    [
        ("toy road loading failed , attempts=0", "toy road loading success, attempts=1", True),
        ("[07:00:01] attempt 1: open toy door failed", "[07:00:09] attempt 2: open toy door ok", True),
        ("open toy door: try 1 of 3 timed out", "open toy door: try 2 of 3 succeeded", True),
        ("open toy door failed, shard 1", "open toy door ok, shard 2", False),
        ("attempt 1: open toy door failed", "attempt 2: open toy window ok", False),
        ("attempt 1: open toy door failed", "attempt 2: open toy door not ok", False),
        ("attempt 1 failed", "attempt 2 ok", False),
        ("attempt 1: open toy door failed", "attempt 2: open toy door failed", False),
    ],
)
def test_the_same_try_must_have_worked(failed: str, worked: str, over: bool) -> None:
    file = LogFile("toy.log", f"toys\n{failed}\n{REFUSED}{worked}\n{LATER}".encode(), 0.0)
    assert tried_again(file, 3) is over
    before = LogFile("toy.log", f"{worked}\n{failed}\n{REFUSED}{LATER}".encode(), 0.0)
    assert not tried_again(before, 3)


def test_what_the_next_try_got_over_is_no_verdict(watch: Watch) -> None:
    failed = "toy road loading failed , attempts=0\n" + REFUSED
    assert watch(failed + "toy road loading success, attempts=1\n" + LATER).verdict.state != "failed"
    assert watch(failed + LATER).verdict.state == "failed"
    behind = failed + "toy road loading success, attempts=1\n" + LATER + REFUSED
    assert watch(behind).verdict.state == "failed"
