"""A program that gave up its last try, and says all the same that its training is finished."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

STEPS = "[train: 17, 599 / 1000] Loss/total: 1.1\n[train: 17, 600 / 1000] Loss/total: 1.0\n"
CRASHED = """Training crashed at epoch 17
Traceback for the error!
Traceback (most recent call last):
  File "/toy/train.py", line 85, in train
    self.turn()
RuntimeError: DataLoader worker (pid 4188) is killed by signal: Segmentation fault.

Restarting training from last epoch ...
"""
FINISHED = "Finished training!\n"


@pytest.mark.parametrize("prefix", ["", "0: ", "[rank3]: "])
def test_a_training_that_crashed_in_its_last_try_has_failed(watch: Watch, prefix: str) -> None:
    text = STEPS + CRASHED + FINISHED
    done = watch("".join(f"{prefix}{line}\n" for line in text.splitlines()))
    assert done.verdict.state == "failed"
    assert done.verdict.root_line.startswith(f"{prefix}RuntimeError: DataLoader worker")


def test_a_training_that_went_on_and_was_finished_did_well(watch: Watch) -> None:
    again = STEPS.replace("17, ", "18, ") * 8
    assert watch(STEPS + CRASHED + again + FINISHED).verdict.state != "failed"
