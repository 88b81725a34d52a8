"""A child process that lost its parent, in a traceback that the end of the log cuts off."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

PROGRESS = "[2026-03-02 11:52:40,118-rk0-log_helper.py#105] Progress: {} / 140 [{}%], Speed: 0.731 s/iter\n"
CHILD = """
Process Process-1:
Traceback (most recent call last):
  File "/opt/python3.11/multiprocessing/process.py", line 314, in _bootstrap
    self.run()
  File "/opt/python3.11/multiprocessing/process.py", line 108, in run
    self._target(*self._args, **self._kwargs)
  File "/opt/python3.11/multiprocessing/connection.py", line 517, in Client
    c = SocketClient(address)
"""
OWN = CHILD.replace("multiprocessing/connection.py", "toy/wheels.py")


def log(steps: int, end: str) -> str:
    return (
        PROGRESS.format(steps - 20, (steps - 20) * 100 // 140)
        + PROGRESS.format(steps, steps * 100 // 140)
        + end
    )


def test_behind_the_last_step_it_is_only_left(watch: Watch) -> None:
    assert watch(log(140, CHILD)).verdict.state == "healthy"


@pytest.mark.parametrize(
    ("steps", "end"), [(120, CHILD), (140, OWN), (140, CHILD.replace("Process Process-1:", ""))]
)
def test_before_the_last_step_or_in_code_of_its_own_it_is_a_failure(
    watch: Watch, steps: int, end: str
) -> None:
    assert watch(log(steps, end)).verdict.state == "failed"


def test_a_full_bar_above_it_says_that_the_work_was_done(watch: Watch) -> None:
    bar = "Toys: [####{}] {}%mean wheel: 0.062\nmean colour: 0.97\n"
    assert watch(bar.format("####", 100) + CHILD).verdict.state == "unknown"
    assert watch(bar.format("##", 70) + CHILD).verdict.state == "failed"
