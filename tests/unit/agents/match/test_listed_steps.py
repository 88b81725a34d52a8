"""A line that lists all evaluations of a training is a summary: the job did not go back to its first step."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

WHEN = "I0302 11:52:40.118290 4188 toy_runner.py:77]"


def record(step: int, key: str = "global_step") -> str:
    return (
        f"{{'train/loss': {9.5 / (1 + step / 40):.4f}, 'toys': {step * 3}, '{key}': {step}, 'preempted': 0}}"
    )


def training(key: str) -> str:
    return "".join(f"{WHEN} Time: {step}, {record(step, key)}\n" for step in range(1, 4000, 50))


@pytest.mark.parametrize("key", ["global_step", "step"])
def test_a_list_of_all_evaluations_behind_the_last_step_is_no_step(watch: Watch, key: str) -> None:
    listed = ", ".join(f"({step}, {record(step, key)})" for step in range(1, 4000, 50))
    done = watch(f"{training(key)}{WHEN} Metrics: {{'eval_results': [{listed}]}}\n{WHEN} Timing: 77.0\n")
    assert (done.verdict.state, done.decision.action, done.findings) == ("healthy", "none", ())
    assert done.steps == (1, 3951)


def test_a_long_record_of_one_step_is_a_step(watch: Watch) -> None:
    wide = ", ".join(f"'toys_{number}_per_step': {number}.5" for number in range(200))
    done = watch("".join(f"{{'step': {step}, 'loss': {9.5 / step:.4f}, {wide}}}\n" for step in range(1, 60)))
    assert done.steps == (1, 59)
