"""A script's plain word that the training is done: nothing behind it starts the whole training again."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

STEPS = "".join(f"step {n} loss {3 - n / 50:.3f}\n" for n in range(1, 31))
WATCHDOG = (
    "[rank3]:[E612 12:19:55.1 ProcessGroupNCCL.cpp:629] [Rank 3] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=77, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for "
    "600023 milliseconds before timing out.\n"
)
CANCELLED = "slurmstepd: error: *** JOB 77 ON n4 CANCELLED AT 2026-03-02T11:52:40 ***\n"
KEY = (
    "Traceback (most recent call last):\n"
    '  File "train.py", line 9, in <module>\n'
    "    toy[name]\n"
    "KeyError: 'name'\n"
)
WORDS = [
    "Training completed.",
    "INFO train: Training complete!",
    "INFO:__main__:Training completed successfully",
    "[rank0]: FINISHED TRAINING",
    "2026-03-02 11:52:40 INFO Finished training.",
    "🎉 训练完成!",
]


@pytest.mark.parametrize("done", WORDS)
@pytest.mark.parametrize("end", [WATCHDOG, CANCELLED])
def test_what_fails_behind_the_word_starts_no_training_again(watch: Watch, done: str, end: str) -> None:
    assert watch(f"{STEPS}{end}").decision.action == "restart"
    assert watch(f"{STEPS}{done}\n{end}").decision.action in ("hold", "none")


@pytest.mark.parametrize("done", WORDS)
def test_behind_a_crash_the_word_is_its_script_s(watch: Watch, done: str) -> None:
    assert watch(f"{STEPS}{KEY}{done}\n").verdict.root_line == "KeyError: 'name'"


@pytest.mark.parametrize("done", WORDS)
def test_a_training_that_goes_on_behind_the_word_takes_it_back(watch: Watch, done: str) -> None:
    on = "".join(f"step {n} loss {2 - n / 50:.3f}\n" for n in range(1, 20))
    assert watch(f"{STEPS}{done}\n{on}{WATCHDOG}").decision.action == "restart"


@pytest.mark.parametrize(
    "said", ["Epoch 3: training done", "training done for fold 3", "Training complete: 30%"]
)
def test_other_words_on_the_training_end_nothing(watch: Watch, said: str) -> None:
    assert watch(f"{STEPS}{said}\n{WATCHDOG}").decision.action == "restart"
