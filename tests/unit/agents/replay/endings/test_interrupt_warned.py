"""Lightning tells of Ctrl+C by a Python warning. Other warnings of that form still end nothing."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

STEPS = "".join(f"step {n} loss {3 - n / 100:.2f}\n" for n in range(10, 60, 10))
CALL = "  warnings.warn(*args, **kwargs)\n"
INTERRUPT = (
    "^C/toy/distributed.py:7: UserWarning: Detected KeyboardInterrupt, attempting graceful shutdown...\n"
)


@pytest.mark.parametrize("rest", ["", CALL])
def test_an_interrupt_told_by_a_warning_is_the_verdict(watch: Watch, rest: str) -> None:
    done = watch(STEPS + INTERRUPT + rest)
    assert (done.verdict.error_type, done.verdict.root_line) == ("user_interrupt", INTERRUPT.rstrip())


@pytest.mark.parametrize(
    "message",
    [
        "a run interrupted by the user is not saved",
        "Training interrupted. Saving is off",
        "CUDA out of memory is near",
    ],
)
def test_another_warning_is_none(watch: Watch, message: str) -> None:
    text = STEPS + f"/toy/loop.py:7: UserWarning: {message}\n" + CALL
    assert watch(text).verdict.state == "healthy"
