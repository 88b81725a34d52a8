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
        ("try 3 failed rc=1; sleeping 7 s", "=== painting SUCCEEDED on try 4 ===", True),
        ("try 3 failed rc=1; sleeping 7 s", "=== painting SUCCEEDED on try 7 ===", False),
        ("try 3 failed rc=1; sleeping 7 s", "=== nothing worked in try 4 ===", False),
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


@pytest.mark.parametrize(
    ("behind", "failed"),
    [
        ("7 toys\n" * 8, False),
        ("7 toys\n" * 7, True),
        ("7 toys\n" * 8 + "ProxyError at toy 7. Attempt 2/3\n", True),
        ("7 toys\n" * 8 + "waiting, then the next try\n", True),
    ],
)
def test_a_try_that_is_not_the_last_and_has_no_successor_was_followed_by_one_that_worked(
    behind: str, failed: bool, watch: Watch
) -> None:
    assert (watch("ProxyError at toy 7. Attempt 1/3\n" + behind).verdict.state == "failed") is failed


def test_the_last_try_has_no_successor(watch: Watch) -> None:
    assert watch("ProxyError at toy 7. Attempt 3/3\n" + "7 toys\n" * 8).verdict.state == "failed"
