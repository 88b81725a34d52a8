"""A success in one file, and failures of unknown time in another one."""

from __future__ import annotations

import pytest

from unit.agents.replay.reading.test_last_writes import BEGUN, At, replay_at, steps

__all__ = ["replay_at"]
CAUGHT = (
    "Traceback (most recent call last):\n"
    '  File "/toy/evaluate.py", line 7, in evaluate\n'
    "    score(batch)\n"
    "ValueError: a toy of no colour\n"
)
LEFT = CAUGHT.replace("evaluate.py", "train.py").replace("in evaluate", "in <module>")
BEHIND = "the evaluation is left out\n/toy/shelf.py:3: UserWarning: the shelf is old\n"
DONE = "Training completed.\n"
COPIED = BEGUN + 86_400


@pytest.mark.parametrize("dated", [True, False])
@pytest.mark.parametrize("names", [("toy_err", "toy_out"), ("b_log", "a_log")])
def test_what_was_caught_may_stand_before_the_success_that_another_copy_tells_of(
    replay_at: At, dated: bool, names: tuple[str, str]
) -> None:
    err, out = names
    done = replay_at(**{err: (CAUGHT + BEHIND, COPIED), out: (steps(1, 80, dated=dated) + DONE, COPIED)})
    assert done.verdict.state == "healthy"
    assert any(f"{out}:81" in each for each in done.assumed)


@pytest.mark.parametrize(
    ("err", "out"),
    [
        (LEFT + BEHIND, DONE),
        (CAUGHT, DONE),
        (CAUGHT + BEHIND, ""),
        (CAUGHT + BEHIND + "srun: error: n4: task 0: Exited with exit code 1\n", DONE),
        (CAUGHT + BEHIND + "Segmentation fault (core dumped)\n", DONE),
    ],
)
def test_an_end_that_a_success_does_not_explain_is_a_failure(replay_at: At, err: str, out: str) -> None:
    done = replay_at(toy_err=(err, COPIED), toy_out=(steps(1, 80) + out, COPIED))
    assert done.verdict.state == "failed"


def test_what_stands_certainly_behind_the_success_is_a_failure(replay_at: At) -> None:
    written = BEGUN + 80
    done = replay_at(toy_err=(CAUGHT + BEHIND, written + 50), toy_out=(steps(1, 80) + DONE, written))
    assert done.verdict.state == "failed"
