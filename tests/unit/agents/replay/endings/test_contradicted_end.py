"""A job that ended well by its code, and a last step or the last lines of its log that say otherwise."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from midwatch.agents.cli import run
from midwatch.agents.replay.scheduler_record import ended_job
from unit.agents.detect.diagnosis.test_cascades import frames
from unit.agents.detect.diagnosis.test_scheduler_word import ASKED, CONTRADICTS, STEPS, WAITING

RAISED = frames("ValueError: the toy broke") + "\n"
CAUGHT = 'Traceback (most recent call last):\n  File "toy.py", line 5, in wind\nValueError: the toy broke\n'
SUMMARY = (
    "E0302 11:52:40.801000 77 site-packages/torch/distributed/elastic/multiprocessing/api.py:869] failed "
    "(exitcode: 1) local_rank: 0 (pid: 78) of binary: /toy/bin/python\n"
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
    "============================================================\n"
    "toy.py FAILED\n"
    "Root Cause (first observed failure):\n"
    "[0]:\n"
    "  host      : n1\n"
    "  exitcode  : 1 (pid: 78)\n"
    "  error_file: <N/A>\n"
    "============================================================\n"
)
SRUN = "srun: error: n1: task 0: Exited with exit code 1\n"
SHELL = "toy.sh: line 14:  3301 Segmentation fault      (core dumped) python toy.py\n"
DONE = "INFO - Training completed\n"
WANDB = frames("wandb.errors.CommError: Run initialization has timed out after 90.0 sec.") + "\n"
LOOP = "step 1 loss: 2.1\nstep 2 loss: 2.1\nstep 3 loss: 2.1\n"  # of which nobody knows the last one
ALL_STEPS = STEPS + STEPS.replace("1/ 900", "899/ 900").replace("2/ 900", "900/ 900")
Told = Callable[..., dict[str, Any]]


@pytest.fixture
def told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Told:
    """From the logs of a job that ended well: what replay says. `record`: sacct's rows, else exit code 0."""

    def replayed(*logs: str, record: str = "") -> dict[str, Any]:
        (folder := tmp_path / "logs").mkdir()
        for number, log in enumerate(logs):
            (folder / f"rank_{number}.log").write_text(log)
        (saved := tmp_path / "record").write_text(f"JobID|State|ExitCode\n{record}")
        end = ("--scheduler", str(saved)) if record else ("--exit-code", "0")
        run(["replay", str(folder), "--json", *end])
        answer: dict[str, Any] = json.loads(capsys.readouterr().out)
        return answer

    return replayed


@pytest.mark.parametrize("end", [RAISED, CONTRADICTS + SUMMARY, RAISED + SRUN, SRUN, SHELL, WAITING + SHELL])
def test_a_log_that_ends_in_a_failure_contradicts_exit_code_0(told: Told, end: str) -> None:
    answer = told(LOOP + end)
    assert answer["verdict"]["state"] == "failed"
    assert answer["decision"]["action"] == "hold"
    assert "the job ended well, but its log ends in the failure of" in answer["decision"]["reason"]


@pytest.mark.parametrize(
    "log",
    [
        LOOP + DONE + RAISED,
        LOOP + RAISED + "uploading what the toy left behind\n",
        LOOP + CAUGHT,
        LOOP + WANDB,
        LOOP + ASKED,
        ALL_STEPS + RAISED,
        LOOP + RAISED + LOOP.replace("step ", "step 1"),
    ],
    ids=["done", "worked on", "caught", "a service was away", "asked to end", "the last step", "more steps"],
)
def test_a_log_that_does_not_end_in_a_failure_leaves_a_good_end_good(told: Told, log: str) -> None:
    answer = told(log)
    assert (answer["verdict"]["state"], answer["decision"]["action"]) == ("healthy", "none")


def test_another_file_may_be_that_of_a_later_attempt(told: Told) -> None:
    assert told(LOOP + RAISED, LOOP)["verdict"]["state"] == "healthy"


def test_the_scheduler_s_fact_stays_as_it_was_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (log := tmp_path / "log").write_text(RAISED)
    assert run(["replay", str(log), "--exit-code", "0"]) == 1
    assert "  scheduler COMPLETED (exit code 0)\n" in capsys.readouterr().out


GOOD = "77|COMPLETED|0:0\n77.batch|COMPLETED|0:0\n"


@pytest.mark.parametrize(
    ("steps", "log", "expected"),
    [
        ("77.0|FAILED|1:0\n", "", ("failed", "slurm_failure", "hold")),
        ("77.0|FAILED|1:0\n", CONTRADICTS + SUMMARY, ("failed", "oom", "stop")),
        ("77.0|OUT_OF_MEMORY|0:125\n", "", ("failed", "host_oom", "hold")),
        ("77.0|FAILED|1:0\n", DONE, ("healthy", "", "none")),
        ("77.0|FAILED|1:0\n77.1|COMPLETED|0:0\n", "", ("healthy", "", "none")),
        ("77.extern|OUT_OF_MEMORY|0:125\n77.0|COMPLETED|0:0\n", "", ("healthy", "", "none")),
        # Another step ended well, so the last one may only have cleaned up.
        ("77.0|COMPLETED|0:0\n77.1|FAILED|1:0\n", "", ("healthy", "", "none")),
        ("77.0|COMPLETED|0:0\n77.1|FAILED|1:0\n", CONTRADICTS, ("failed", "oom", "stop")),
        ("77.9|COMPLETED|0:0\n77.10|FAILED|1:0\n", CONTRADICTS, ("failed", "oom", "stop")),
    ],
)
def test_the_last_step_of_a_job_that_completed_counts_where_the_log_agrees(
    told: Told, steps: str, log: str, expected: tuple[str, str, str]
) -> None:
    answer = told(LOOP + log, record=GOOD + steps)
    verdict = answer["verdict"]
    assert (verdict["state"], verdict["error_type"], answer["decision"]["action"]) == expected


def test_a_job_that_made_its_last_step_has_done_its_work(told: Told) -> None:
    assert told(ALL_STEPS, record=GOOD + "77.0|FAILED|1:0\n")["verdict"]["state"] == "healthy"


def test_json_tells_of_the_last_step_too() -> None:
    steps = [{"step": {"id": {"step_id": "0"}}, "state": "FAILED"}]
    record = {"jobs": [{"job_id": 77, "state": {"current": ["COMPLETED"]}, "steps": steps}]}
    failed = ended_job(json.dumps(record), "record", ()).failed_step
    assert failed is not None
    assert (failed.state.word, failed.only) == ("FAILED", True)
    assert failed.state.reason == "the job ended COMPLETED, but its last step 77.0 ended FAILED"


def test_steps_of_which_a_narrow_column_cut_the_number_have_no_order() -> None:
    record = "JobID|State|ExitCode\n7700123|COMPLETED|0:0\n7700123+|COMPLETED|0:0\n7700123.0|FAILED|1:0\n"
    assert ended_job(record, "record", ()).failed_step is None


@pytest.mark.parametrize(
    "rows", ["77.0|COMPLETED|0:0\n77.1|COMPLETED|0:0\n", "77|FAILED|1:0\n77.0|FAILED|1:0\n"]
)
def test_a_record_that_does_not_contradict_itself_tells_of_no_step(rows: str) -> None:
    assert ended_job(f"JobID|State|ExitCode\n{rows}", "record", ()).failed_step is None


def test_the_last_start_has_its_own_last_step() -> None:
    rows = "77|FAILED|1:0\n77.0|FAILED|1:0\n77|COMPLETED|0:0\n77.0|COMPLETED|0:0\n"
    assert ended_job(f"JobID|State|ExitCode\n{rows}", "record", ()).failed_step is None
