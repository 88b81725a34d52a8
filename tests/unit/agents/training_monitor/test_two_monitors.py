"""Two monitors watch one training: the stop of one is no person's stop for the other.

The race lasts for moments on a real head, so a stand-in for the head answers here.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from midwatch.agents.training_monitor import restart


class _Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def _job(name: str, status: str) -> dict[str, Any]:
    return {"submission_id": name, "status": status}


def _watched(
    monkeypatch: pytest.MonkeyPatch, jobs: Callable[[float], list[dict[str, Any]]]
) -> dict[str, Any]:
    """What a monitor says of a training whose head tells these jobs as time passes."""
    clock = _Clock()
    monkeypatch.setattr(restart, "time", clock)
    monkeypatch.setattr(restart, "head_of", lambda _: SimpleNamespace(name="toy head"))
    monkeypatch.setattr(restart, "read_jobs", lambda _: jobs(clock.now))
    monkeypatch.setattr(restart, "printed", lambda *_: "step 5 of 10\n")
    monkeypatch.setattr(restart, "named", lambda *_: "toy")
    monkeypatch.setattr(
        restart,
        "starts",
        lambda told, _: [
            SimpleNamespace(submission_id=job["submission_id"], job=job, live=True, retries=0) for job in told
        ],
    )
    return restart.auto_restart("toy", "toy", "/toy", retry_delay=1, stagnation_threshold=2, check_interval=1)


def test_a_start_that_the_other_monitor_stopped_goes_on_in_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def jobs(now: float) -> list[dict[str, Any]]:
        if now < 3:
            return [_job("one", "RUNNING")]
        if now < 9:
            return [_job("one", "STOPPED")]
        return [_job("one", "STOPPED"), _job("two", "SUCCEEDED")]

    said = _watched(monkeypatch, jobs)
    assert (said["success"], said["job_id"]) == (True, "two")


def test_a_start_that_stalled_and_that_a_person_stopped_stays_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = _watched(monkeypatch, lambda now: [_job("one", "RUNNING" if now < 3 else "STOPPED")])
    assert (said["success"], said["status"]) == (False, "STOPPED")
    assert said["reason"] == "somebody stopped it, so it stays stopped"
