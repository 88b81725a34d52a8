"""Exceptions of Ray's workers that stood before each step end nothing; what else is said of an end does."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

WORKER = "(ToyRollout pid=77) "
RAISED = (
    f"{WORKER}Traceback (most recent call last):\n"
    f'{WORKER}  File "/toy/rollout.py", line 9, in act\n'
    f'{WORKER}    raise ValueError("no answer")\n'
    f"{WORKER}ValueError: no answer was found in: toy {{}}\n"
)
OTHER = "(ToyReward pid=78) KeyError: 'toy'\n"
DRIVER = (
    "ray.exceptions.RayTaskError(ValueError): ray::ToyRollout.act() (pid=77)\n"
    "ValueError: no answer was found in: toy\n"
)
HEAD = "".join(f"the toy's setting {name} is on\n" for name in "abcdefghijklmnop")


def step(number: int) -> str:
    return f"(ToyDriver pid=70) step:{number} - actor/toy_loss:0.{number} - timing/step:41.2\n"


def turn(number: int) -> str:
    return "".join(RAISED.format(each) for each in range(3)) + step(number)


def test_a_worker_s_exception_that_stood_before_two_steps_ended_nothing(watch: Watch) -> None:
    done = watch(HEAD + step(1) + turn(2) + turn(3) + RAISED.format(7))
    assert done.verdict.state == "healthy"
    assert any("Ray's workers" in each for each in done.assumed)


@pytest.mark.parametrize(
    "text",
    [
        step(1) + turn(2) + RAISED.format(7),
        step(1) + turn(2) + turn(3) + RAISED.format(7) + OTHER,
        step(1) + turn(2) + turn(3) + RAISED.format(7) + DRIVER,
        step(1) + step(2) + step(3) + RAISED.format(7),
        (step(1) + turn(2) + turn(3) + RAISED.format(7)).replace(WORKER, ""),
    ],
)
def test_other_ends_are_failures(watch: Watch, text: str) -> None:
    assert watch(HEAD + text).verdict.state == "failed"
