"""A saved log that ends while its trainer skips each step for the size of its gradients. A person decides."""

from __future__ import annotations

import pytest

from midwatch.agents.replay.endings.broken_gradients import SKIPS
from unit.agents.conftest import Watch


def made(*steps: int) -> str:
    return "".join(
        f"[toy][INFO] round 9 step {step}: total_loss=0.4{step % 9}, tokens=4188\n" for step in steps
    )


def skipped(*steps: int) -> str:
    norm = "[toy][WARNING] Gradient norm 4{}.18 exceeds the threshold 0.9, skipping optimizer step.\n"
    return "".join(norm.format(step % 9) + made(step) for step in steps)


def test_steps_that_are_all_skipped_are_the_end(watch: Watch) -> None:
    done = watch(made(*range(1, 9)) + skipped(*range(9, 22)) + "[toy][INFO] scores {'accuracy': 0.02}\n")
    assert (done.verdict.error_type, done.decision.action) == ("numerical_instability", "hold")
    assert (done.verdict.root_line_number, done.decision.reason) == (9, SKIPS)


@pytest.mark.parametrize(
    "text",
    [
        made(*range(1, 9)) + skipped(*range(9, 15)),
        skipped(*range(1, 14)) + made(14, 15),
        "".join(
            skipped(step) + made(step + 1, step + 2, step + 3, step + 4, step + 5, step + 6)
            for step in range(1, 99, 7)
        ),
    ],
    ids=["a few", "steps behind them", "now and then"],
)
def test_a_step_that_is_skipped_now_and_then_ends_nothing(watch: Watch, text: str) -> None:
    assert watch(text).verdict.state == "healthy"
