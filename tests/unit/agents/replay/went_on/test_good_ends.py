"""Where the last lines tell of work that is done, and which process must have printed them."""

from __future__ import annotations

import pytest

from midwatch.agents.replay.reading.log_files import LogFile
from midwatch.agents.replay.went_on.good_ends import (
    all_voices_tell,
    good_ends,
    has_written,
    says_exit_zero,
    says_it_ended_well,
)
from unit.agents.conftest import Watch


def log(text: str) -> LogFile:
    return LogFile("log", text.encode(), 0.0)


@pytest.mark.parametrize(
    "line",
    [
        "done: 7 toys from 9 boxes",
        "all epochs done",
        "Notebook finished: 7/7 cells",
        "search over: 7 generations",
        "2026-03-02 08:00:00 | INFO | toys:7 - Training of experiment is done and the best AP is 7.25",
        "2026-03-02 08:00:00 INFO toys: training finished",
        "saved toy.pt",
        "toy.npz written; all 7 boxes used",
        "step 70/70 saved toy.pt",
        "best checkpoint: box/toy.safetensors",
        '{"event": "finished", "toys": 7}',
        "[toys] 7 stages, 6 ok. SUCCESS",
        "12 of 12 toys are painted; best: toy 7",
        "toys saved anew; 90/90 toy wheels learnt",
    ],
)
def test_a_line_tells_of_a_good_end(line: str) -> None:
    assert good_ends(log(f"toy\n{line}\n")) == [2]


@pytest.mark.parametrize(
    "line",
    [
        "epoch 7 done",
        "5 of 7 done",
        "5 of 7 epochs done",
        "step 7/70 saved toy.pt",
        "training not finished",
        "finished with errors",
        "emergency checkpoint saved to toy.pt",
        "toy - INFO - Cleaning up finished run: 7",
        "attempt 2 done",
        "done = 7",
        "the wheels are done by hand",
        "11 of 12 toys are painted",
        "12 of 12 toys are missing",
        "part 12 of 12",
        "12 of 12 attempts",
        "1 of 1 toys",
        "toy 12/12 loss=0.3107",
        "toys/12/12 wheels",
    ],
)
def test_a_line_tells_of_none(line: str) -> None:
    assert good_ends(log(f"toy\n{line}\n")) == []


def test_only_the_last_lines_count() -> None:
    assert good_ends(log("done\n" + "wheel\n" * 9)) == []


def test_an_exit_code_makes_it_sure() -> None:
    assert says_it_ended_well(log("lost\nall toys done\ntoys ended with 0\n"), 1)
    assert not says_it_ended_well(log("lost\nall toys done\ntoys ended with 7\n"), 1)
    assert not says_it_ended_well(log("lost\ntoys ended with 0\n"), 1)


CAUGHT = (
    "Traceback (most recent call last):\n"
    '  File "/toys/paint.py", line 9, in tidy_up\n    box.close()\n'
    "ValueError: the box is closed\n"
)


def test_a_script_s_word_of_exit_code_0_counts_for_what_the_program_had_caught(watch: Watch) -> None:
    steps = "".join(f"step {n} loss {3 - n / 50:.3f}\n" for n in range(1, 31))
    assert watch(f"{steps}{CAUGHT}exit status 0\n").verdict.state == "healthy"
    assert watch(f"{steps}{CAUGHT}exit status 1\n").verdict.state == "failed"
    assert watch(f"{steps}{CAUGHT.replace('tidy_up', '<module>')}exit status 0\n").verdict.state == "failed"
    assert says_exit_zero(log("lost\ntoy exited with code 0\n"), 1)
    assert not says_exit_zero(log("lost\nexit status 0\nmore toys\n"), 1)


def test_what_is_written_behind_the_line_counts() -> None:
    assert has_written(log("lost\nsaved toy.pt\n"), 1)
    assert not has_written(log("saved toy.pt\nlost\n"), 2)
    assert not has_written(log("lost\nall done\n"), 1)


def _says(who: str, what: str) -> str:
    return f"2026-03-02 08:00:00,7 {who} INFO {what}\n"


def test_each_logger_must_tell_of_it() -> None:
    work = (_says("toy-1", "turn 7") + _says("toy-2", "turn 7")) * 3 + "lost\n"
    assert all_voices_tell(log(work + _says("toy-1", "training done") + _says("toy-2", "training done")), 7)
    assert not all_voices_tell(log(work + _says("toy-1", "training done")), 7)
    assert not all_voices_tell(log(work + "training done\n"), 7)


AWAY = (
    'Traceback (most recent call last):\n  File "/toys/paint.py", line 9, in <module>\n    tell("done")\n'
    "ConnectionRefusedError: [Errno 111] Connection refused\n"
)


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        pytest.param(AWAY + "saved toy.pt\n", False, id="results behind a service that was away"),
        pytest.param(AWAY + "Job done\n", True, id="words that a script prints"),
        pytest.param(
            AWAY.replace("ConnectionRefusedError: [Errno 111]", "KeyError:") + "saved toy.pt\n",
            True,
            id="a bug",
        ),
        pytest.param(AWAY + "all toys done\ntoys ended with 0\n", False, id="a good end and exit code 0"),
    ],
)
def test_who_must_have_got_over_it(watch: Watch, text: str, *, failed: bool) -> None:
    wheels = "".join(f"wheel {n} of the toy\n" for n in range(9))
    assert (watch(wheels + text).verdict.state == "failed") is failed


def test_compose_says_aborting_at_each_end(watch: Watch) -> None:
    ends = "toy-1 exited with code 0\nAborting on container exit...\n"
    assert watch("step 1 loss 0.7\nstep 2 loss 0.6\n" + ends).verdict.state != "failed"


LOST = (
    "[rank1]:[E302 11:52:40.118 ProcessGroupNCCL.cpp:542] [Rank 1] Collective WorkNCCL(SeqNum=7, "
    "OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=600000) raised the following async exception: "
    "NCCL error: unhandled system error, NCCL version 2.27.5\n"
)
ALL = "".join(f"step {step}/300 | loss 2.{step}\n" for step in range(20, 301, 20))
COUNTED = "训练结束 | 300 步 | 41.2 min\n"


def test_a_program_that_counts_all_its_steps_lost_its_ranks_while_it_left(watch: Watch) -> None:
    assert watch(ALL + LOST + COUNTED).verdict.state == "healthy"


@pytest.mark.parametrize(
    "log",
    [
        ALL + LOST + COUNTED.replace("300", "41"),  # a script may say so, too
        ALL.replace("step 300/300 | loss 2.300\n", "") + LOST + COUNTED,
        ALL + "RuntimeError: CUDA error: an illegal memory access was encountered\n" + COUNTED,
    ],
)
def test_without_its_last_step_or_its_count_or_for_another_reason_it_failed(watch: Watch, log: str) -> None:
    assert watch(log).verdict.state == "failed"
