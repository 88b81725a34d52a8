"""What a program said of its own failure counts for more than the report of its exit code."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

STEPS = "".join(f"step {n} loss {3 - n / 50:.3f}\n" for n in range(1, 31))
OTHERS = "".join(f"INFO rank 0: shelf {n} is full\n" for n in range(3))
NOTICE = "E0302 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 3) local_rank: 1 "
REPORTS = (
    NOTICE + "(pid: 77) of binary: /toy/python\n",
    "srun: error: n4: task 1: Exited with exit code 3\n",
    "make: *** [Makefile:7: toys] Error 3\n",
)
WORDS = (
    ("[2026-03-02 08:00:00] ERROR rank 1: 7 wheels for 8 axles", "exception"),
    ("error: 7 wheels for 8 axles", "exception"),
    ("2026-03-02T08:00:00.700 r1 ERROR 7 wheels for 8 axles", "exception"),
    ("[rank1] FATAL no wheels in /toy/box", "exception"),
    ("rank 1: 7 wheels do not match 8 axles, aborting", "exception"),
    ("CRITICAL rank 1: the loss is not finite, exit 3", "numerical_instability"),
)


@pytest.mark.parametrize("report", REPORTS)
@pytest.mark.parametrize(("words", "error_type"), WORDS)
def test_the_error_above_the_report_of_an_exit_code_is_the_root(
    watch: Watch, words: str, error_type: str, report: str
) -> None:
    done = watch(STEPS + words + "\n" + OTHERS + report)
    assert (done.verdict.root_line, done.verdict.error_type) == (words, error_type)
    assert (done.decision.action, done.verdict.rule) == ("hold", "")
    assert "the program's own last error" in done.decision.reason


@pytest.mark.parametrize(
    "above",
    [
        "ERROR the toy box is away, trying again in 3 s\n",  # it goes on
        "ERROR 7 wheels for 8 axles\n" + STEPS,  # it went on
        "WARNING 7 wheels for 8 axles\n",
        "  * Error codes = 7, 8\n",
        "wandb: ERROR 7 wheels for 8 axles\n",
    ],
)
def test_an_error_that_ended_nothing_is_not_the_root(watch: Watch, above: str) -> None:
    done = watch(STEPS + above + REPORTS[1])
    assert (done.verdict.root_line, done.verdict.state) == (REPORTS[1].strip(), "failed")


def test_the_first_of_errors_that_stand_together_is_the_root(watch: Watch) -> None:
    done = watch(STEPS + "ERROR 7 wheels for 8 axles\nERROR the toy is left as it is\n" + REPORTS[0])
    assert done.verdict.root_line == "ERROR 7 wheels for 8 axles"


def test_the_tracebacks_of_others_may_stand_between(watch: Watch) -> None:
    code = "".join(
        f'[rank0]:   File "/toy/wheel.py", line {n}, in turn\n[rank0]:     turn()\n' for n in range(9)
    )
    lost = "[rank0]: RuntimeError: [../toy/pair.cc:7] Connection closed by peer [127.0.0.1]:2963\n"
    raised = f"[rank0]: Traceback (most recent call last):\n{code}{lost}"
    done = watch(STEPS + "ERROR 7 wheels for 8 axles\n" + raised + REPORTS[0])
    assert done.verdict.root_line == "ERROR 7 wheels for 8 axles"


def test_a_known_cause_stays_the_root(watch: Watch) -> None:
    cause = "RuntimeError: CUDA out of memory. Tried to allocate 7.00 GiB"
    done = watch(
        f'{STEPS}Traceback (most recent call last):\n  File "t.py", line 7\n{cause}\nERROR toy\n{REPORTS[1]}'
    )
    assert done.verdict.root_line == cause
