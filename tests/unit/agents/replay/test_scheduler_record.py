"""The scheduler's record of a job is read in the shapes in which people save it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from midwatch.agents.cli import run
from midwatch.agents.replay.scheduler_record import from_exit_code, from_text
from midwatch.streams.errors import UsageError

COLUMNS = """\
JobID           JobName  Partition    Account  AllocCPUS      State ExitCode
------------ ---------- ---------- ---------- ---------- ---------- --------
77                 wrap      debug       root          8  NODE_FAIL      1:0
77.batch          batch                  root          8  CANCELLED     0:15
"""
SCONTROL = """\
JobId=77 JobName=wrap
   JobState=PREEMPTED Reason=None Dependency=(null)
   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:15
"""
JSON = {
    "jobs": [
        {
            "state": {"current": ["OUT_OF_MEMORY"], "reason": "None"},
            "exit_code": {
                "return_code": {"set": True, "number": 0},
                "signal": {"id": {"set": True, "number": 9}},
            },
        }
    ]
}


@pytest.mark.parametrize(
    ("text", "word", "exit_code", "signal"),
    [
        (COLUMNS, "NODE_FAIL", 1, None),
        ("JobID|State|ExitCode\n77|CANCELLED by 1000|0:15\n77.0|FAILED|1:0\n", "CANCELLED", 0, 15),
        (SCONTROL, "PREEMPTED", 0, 15),
        (json.dumps(JSON), "OUT_OF_MEMORY", 0, 9),
        (json.dumps({"jobs": [{"job_state": "TIMEOUT", "exit_code": 0}]}), "TIMEOUT", None, None),
        (json.dumps({"status": "FAILED", "driver_exit_code": -9, "message": "killed"}), "FAILED", None, 9),
    ],
)
def test_each_shape_is_read(text: str, word: str, exit_code: int | None, signal: int | None) -> None:
    state = from_text(text, "record")
    assert (state.word, state.exit_code, state.signal, state.over) == (word, exit_code, signal, True)


@pytest.mark.parametrize(
    "text", ["", "nothing\nof it\n", "{}", "[]", "{", '{"jobs": [7]}', "JobID|ExitCode\n7|1\n"]
)
def test_what_holds_no_state_is_named(text: str) -> None:
    with pytest.raises(UsageError, match="no state of a job"):
        from_text(text, "record")


def test_a_job_that_runs_has_no_end() -> None:
    with pytest.raises(UsageError, match="had not ended: RUNNING"):
        from_text("JobID|State\n77|RUNNING\n", "record")


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        (0, ("COMPLETED", 0, None)),
        (1, ("FAILED", 1, None)),
        (137, ("FAILED", None, 9)),
        (-11, ("FAILED", None, 11)),
    ],
)
def test_an_exit_code_above_128_names_a_signal(code: int, shown: tuple[str, int | None, int | None]) -> None:
    state = from_exit_code(code)
    assert (state.word, state.exit_code, state.signal) == shown


def test_replay_takes_the_scheduler_s_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (log := tmp_path / "train.log").write_text("loading the toy\n")
    (record := tmp_path / "sacct.txt").write_text(COLUMNS)
    assert run(["replay", str(log), "--scheduler", str(record)]) == 1
    assert "would restart: slurm_failure is transient" in capsys.readouterr().out
    assert run(["replay", str(log), "--exit-code", "0"]) == 0
    assert run(["replay", str(log), "--exit-code", "1", "--scheduler", str(record)]) == 2
    assert run(["replay", str(log), "--scheduler", str(tmp_path / "none")]) == 2
