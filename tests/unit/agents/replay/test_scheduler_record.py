"""The scheduler's record of a job is read in the shapes in which people save it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midwatch.agents.cli import run
from midwatch.agents.replay.scheduler_record import ended_job, from_exit_code, from_text
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
        (json.dumps([{"type": "SUBMISSION", "status": "FAILED", "driver_exit_code": 1}]), "FAILED", 1, None),
        (json.dumps({"kind": "RayJob", "status": {"jobStatus": "FAILED"}}), "FAILED", None, None),
        (
            json.dumps({"kind": "List", "items": [{"kind": "RayJob", "status": {"jobStatus": "STOPPED"}}]}),
            "STOPPED",
            None,
            None,
        ),
        ("Status for job 'raysubmit_a': FAILED\nStatus message: toy\n", "FAILED", None, None),
        (json.dumps(JSON["jobs"][0]), "OUT_OF_MEMORY", 0, 9),
        (f"sacct: warning: toy\n{json.dumps(JSON)}\n", "OUT_OF_MEMORY", 0, 9),
        (f"\ufeff{COLUMNS}", "NODE_FAIL", 1, None),
        (f"$ sacct -j 77\n{COLUMNS}", "NODE_FAIL", 1, None),
        (COLUMNS.replace(" NODE_FAIL", "OUT_OF_ME+"), "OUT_OF_MEMORY", 1, None),
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


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("JobID|State\n77|COMPLE+\n", "cut to COMPLE.*COMPLETED, COMPLETING"),
        ("JobID|State\n77|XYZ+\n", "no state begins so"),
        ("JobID|State\n77|A_STATE_OF_2031\n", "none that midwatch knows: A_STATE_OF_2031"),
        ("77|FAILED|TIMEOUT|1:0\n", "can be read in two ways"),
    ],
)
def test_what_cannot_be_read_for_certain_is_refused_with_a_remedy(text: str, what: str) -> None:
    with pytest.raises(UsageError, match=what) as refused:
        from_text(text, "record")
    assert refused.value.remedy


SEVERAL = "JobID|State|ExitCode\n77|COMPLETED|0:0\n78|OUT_OF_MEMORY|0:125\n79|NODE_FAIL|1:0\n"
TASKS = "JobID|JobIDRaw|State\n77_1|78|COMPLETED\n77_2|79|FAILED\n77_12|77|NODE_FAIL\n77_[13-20]|77|PENDING\n"


@pytest.mark.parametrize(
    ("text", "clues", "name"),
    [
        (SEVERAL, ["slurm-78.out"], "78"),
        (SEVERAL, ["toy.log", "79", "78"], "79"),
        (SEVERAL, ["train.o77"], "77"),
        (TASKS, ["slurm-77_2.out"], "77_2"),
        (TASKS, ["slurm-77_12.out"], "77_12"),
        (TASKS, ["79_0_log.out"], "77_2"),
        (TASKS, ["77"], "77_12"),
        (SEVERAL.replace("78", "raysubmit_a"), [], ""),
        (SEVERAL, [], ""),
        ('[{"status": "FAILED", "job_id": "77"}, {"status": "STOPPED"}]', [], ""),
        (SEVERAL, ["slurm-7.out", "1079.log", "790"], ""),
    ],
)
def test_of_several_jobs_the_one_that_a_clue_names_is_taken(text: str, clues: list[str], name: str) -> None:
    if name:
        assert ended_job(text, "record", clues).names[0] == name
        return
    with pytest.raises(UsageError, match=r"\d jobs stand there, .*: 77") as refused:
        ended_job(text, "record", clues)
    assert "--job ID" in (refused.value.remedy or "")


def test_an_error_names_a_few_of_many_jobs() -> None:
    rows = "".join(f"{100 + n}|FAILED\n" for n in range(40))
    with pytest.raises(UsageError, match=r"40 jobs .*: 100, 101, 102, 103, 104, 105, \.\.\n"):
        from_text(f"JobID|State\n{rows}", "record")


def test_tasks_that_were_not_started_are_no_job_beside_one_that_was() -> None:
    assert from_text("JobID|State\n77_[1-9]|PENDING\n77_0|FAILED\n", "record").word == "FAILED"
    with pytest.raises(UsageError, match="had not ended: PENDING"):
        from_text("JobID|State\n77_[1-9]|PENDING\n", "record")


PIECES = [
    "JobID|State|ExitCode\n",
    "77|FAILED|1:0\n",
    "77+1.",
    "State ",
    "\n",
    "--- ",
    "JobState=",
    "JobId=7 ",
    "|",
]
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.sampled_from(["FAILED", "RayJob"])
)
KEYS = st.sampled_from(
    ["jobs", "state", "status", "kind", "job_id", "exit_code", "steps", "step", "id", "array"]
)
TREES = st.recursive(
    SCALARS, lambda part: st.lists(part, max_size=3) | st.dictionaries(KEYS, part, max_size=4)
)


@given(
    st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=9).map("".join) | TREES.map(json.dumps)
)
def test_no_text_breaks_the_reading(text: str) -> None:
    try:
        assert from_text(text, "record").over
    except UsageError as refused:
        assert refused.remedy  # noqa: PT017  # a state is as good


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
        (129, ("FAILED", None, 1)),
        (192, ("FAILED", None, 64)),
        (128, ("FAILED", 128, None)),
        (193, ("FAILED", 193, None)),
        (255, ("FAILED", 255, None)),
    ],
)
def test_an_exit_code_from_129_to_192_names_a_signal(
    code: int, shown: tuple[str, int | None, int | None]
) -> None:
    state = from_exit_code(code)
    assert (state.word, state.exit_code, state.signal) == shown


STEPS = "".join(f"step: {step}  loss:  {3 - step / 100:.4f}\n" for step in range(1, 30))
CANCELLED = "slurmstepd: error: *** JOB 77 ON n3 CANCELLED AT 2026-03-02T12:00:01 ***\n"


def told(folder: Path, log: str, record: str, capsys: pytest.CaptureFixture[str], *more: str) -> str:
    (folder / "train.log").write_text(log)
    (folder / "record").write_text(record)
    run(["replay", str(folder / "train.log"), "--scheduler", str(folder / "record"), *more])
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("record", "decision"),
    [
        ("JobID|State\n77|NODE_FAIL\n", "would restart: slurm_failure is transient"),
        (
            "JobID|State\n77|NODE_FAIL\n77|REQUEUED\n",
            "would none: SLURM has already queued it again: REQUEUED",
        ),
        (
            SCONTROL.replace("PREEMPTED Reason=None", "PENDING Reason=BeginTime").replace("ts=0", "ts=1"),
            "would none: SLURM has already queued it again: PENDING, BeginTime",
        ),
        ("JobID|State\n77|CANCELLED by 1000\n", "would none: uid 1000 cancelled it"),
    ],
)
@pytest.mark.parametrize("last", ["", CANCELLED.replace("01 ***", "01 DUE TO JOB REQUEUE ***")])
def test_a_job_that_slurm_starts_again_is_left_to_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], record: str, decision: str, last: str
) -> None:
    if last and "restart" in decision:
        decision = "would restart: preemption is transient"
    assert f"  decision  {decision} (policy" in told(tmp_path, STEPS + last, record, capsys)


@pytest.mark.parametrize("reason", ["DependencyNeverSatisfied", "AssocGrpGRESMinutes", "QOSGrpCpuLimit"])
@pytest.mark.parametrize("last", ["", CANCELLED])
def test_a_cancel_by_a_limit_waits_for_a_person_and_names_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], reason: str, last: str
) -> None:
    record = SCONTROL.replace("PREEMPTED Reason=None", f"CANCELLED Reason={reason}")
    out = told(tmp_path, STEPS + last, record, capsys)
    assert "  decision  would hold: " in out
    assert f"  scheduler slurm 77: CANCELLED ({reason}, exit code 0, signal 15)\n" in out
    assert ("the scheduler itself cancelled it: " + reason in out) == bool(last)


def test_the_log_s_own_words_choose_among_several_jobs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "slurm 79: NODE_FAIL" in told(tmp_path, f"SLURM_JOB_ID=79\n{STEPS}", SEVERAL, capsys)
    assert "slurm 78: OUT_OF_MEMORY" in told(tmp_path, STEPS, SEVERAL, capsys, "--job", "78")
    assert told(tmp_path, STEPS, SEVERAL, capsys) == ""


def test_text_shows_the_scheduler_s_fact_only_where_it_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "  scheduler slurm 77: NODE_FAIL (exit code 1)\n" in told(tmp_path, STEPS, COLUMNS, capsys)
    log = tmp_path / "train.log"
    assert run(["replay", str(log), "--exit-code", "137"]) == 1
    assert "  scheduler FAILED (signal 9)\n" in capsys.readouterr().out
    log.write_text(STEPS + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n")
    assert run(["replay", str(log)]) == 1
    assert "  scheduler " not in capsys.readouterr().out


def test_json_names_the_scheduler_and_its_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    verdict = json.loads(told(tmp_path, STEPS, COLUMNS, capsys, "--json"))["verdict"]
    assert verdict["root_line"] == "slurm: 77 running → NODE_FAIL (NODE_FAIL, exit code 1)"
    assert verdict["subsystem"] == "slurm"


def test_replay_takes_the_scheduler_s_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (log := tmp_path / "train.log").write_text("loading the toy\n")
    (record := tmp_path / "sacct.txt").write_text(COLUMNS)
    assert run(["replay", str(log), "--scheduler", str(record)]) == 1
    assert "would restart: slurm_failure is transient" in capsys.readouterr().out
    assert run(["replay", str(log), "--exit-code", "0"]) == 0
    assert run(["replay", str(log), "--exit-code", "1", "--scheduler", str(record)]) == 2
    assert run(["replay", str(log), "--scheduler", str(tmp_path / "none")]) == 2
