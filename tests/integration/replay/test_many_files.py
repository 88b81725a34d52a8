"""`midwatch replay DIR`: thousands of ranks' files are one job, and a folder of many jobs is a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from midwatch.agents.cli.ask.replay import replay
from midwatch.streams.errors import UsageError

STEPS = "".join(f"step: {step}  loss:  {3 - step / 100:.4f}\n" for step in range(1, 30))
RAISED = (
    "Traceback (most recent call last):\n"
    '  File "/toy/train.py", line 9, in main\n'
    "    return shards[index]\n"
    "IndexError: list index out of range\n"
)
OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
WATCHDOG = (
    "[rank{0}]:[E1120 07:32:05.123456789 ProcessGroupNCCL.cpp:607] [Rank {0}] Watchdog caught collective"
    " operation timeout: WorkNCCL(SeqNum=4177, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000)"
    " ran for 600011 milliseconds before timing out.\n"
)


def ran(*arguments: str | Path) -> Result:
    done = CliRunner().invoke(replay, [*map(str, arguments)], standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done


def plain(*arguments: str | Path) -> Any:
    return json.loads(ran(*arguments, "--json").output)


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.fixture
def many(tmp_path: Path) -> Path:
    return write(
        tmp_path,
        **{
            "train-4711001.out": STEPS,
            "train-4711001.err": OUT_OF_MEMORY,
            "train-4711002.out": STEPS + "Training complete\n",
            "train-4711002.err": "",
            "eval-4711003_7.out": RAISED,
        },
    )


def test_files_of_several_job_ids_are_a_table_with_a_line_for_each_job(many: Path) -> None:
    done = ran(many)
    heading, *rows = [line.split() for line in done.output.splitlines()]
    assert heading == ["JOB", "LINES", "VERDICT", "ROOT", "ACTION"]
    assert rows == [
        ["eval-4711003_7", "4", "failed:", "exception", "(code)", f"{many}/eval-4711003_7.out:4", "stop"],
        ["train-4711001", "30", "failed:", "oom", "(memory)", f"{many}/train-4711001.err:1", "stop"],
        ["train-4711002", "30", "healthy", "-", "none"],
    ]
    assert done.return_value == 1


def test_their_json_is_a_list_of_the_objects_of_one_job_each(many: Path) -> None:
    jobs = plain(many)
    assert [each["job"].rpartition("/")[2] for each in jobs] == [
        "eval-4711003_7", "train-4711001", "train-4711002",
    ]  # fmt: skip
    assert [each["verdict"]["state"] for each in jobs] == ["failed", "failed", "healthy"]
    assert set(jobs[0]) >= {"version", "verdict", "decision", "evidence", "hits"}


def test_the_caller_may_say_that_they_are_one_job(many: Path) -> None:
    assert plain(many, "--jobs-by", "one")["verdict"]["state"] == "failed"
    assert len(plain(many, "--jobs-by", "file")) == 5


def test_what_holds_for_one_job_is_refused_for_several(many: Path) -> None:
    with pytest.raises(UsageError, match="3 jobs have their logs there"):
        ran(many, "--exit-code", "1")


def test_a_sub_folder_for_each_job_is_a_table_and_one_for_each_rank_is_a_job(tmp_path: Path) -> None:
    jobs = write(tmp_path / "jobs", **{"run1__rank0.log": STEPS, "run2__rank0.log": STEPS + RAISED})
    assert [each["verdict"]["state"] for each in plain(jobs)] == ["healthy", "failed"]
    ranks = write(tmp_path / "ranks", **{"rank0__out.log": STEPS, "rank1__out.log": STEPS + RAISED})
    assert plain(ranks)["verdict"]["state"] == "failed"
    assert [each["verdict"]["state"] for each in plain(ranks, "--jobs-by", "folder")] == ["healthy", "failed"]


@pytest.mark.parametrize(
    "names",
    [
        ("train-4711001.out", "train-4711001.err"),
        ("train_20261120.log", "train_20261121.log"),
        ("worker-1a2b-31001.out", "worker-1a2b-31002.out"),
        ("rank_1000.log", "rank_1001.log"),
        ("train-4711001_0.out", "train.log"),
    ],
)
def test_names_of_one_job_s_files_are_one_job(tmp_path: Path, names: tuple[str, str]) -> None:
    assert isinstance(plain(write(tmp_path, **dict.fromkeys(names, STEPS))), dict)


def test_the_files_of_a_thousand_ranks_are_one_job_with_one_root(tmp_path: Path) -> None:
    for rank in range(1_000):
        last = f"[rank{rank}]: {OUT_OF_MEMORY}" if rank == 77 else WATCHDOG.format(rank)
        (tmp_path / f"rank{rank}.log").write_text(f"[rank{rank}]: rank {rank} is up\n{last}")
    verdict = plain(tmp_path)["verdict"]
    assert (verdict["error_type"], verdict["rank"]) == ("oom", 77)
    assert verdict["root_file"] == str(tmp_path / "rank77.log")


def test_earlier_starts_are_said_in_a_line_and_in_json(tmp_path: Path) -> None:
    head = "toy trainer 2.1 with 8 workers\nreads the shards of the toy corpus\nbuilds a model of 2 layers\n"
    log = tmp_path / "train.log"
    log.write_text(head + STEPS + OUT_OF_MEMORY + head + STEPS)
    assert f"  earlier   {log}:1-33 failed: oom (memory), line 33\n" in ran(log).output
    assert plain(log)["earlier_starts"] == [
        {
            "file": str(log), "first_line": 1, "last_line": 33, "state": "failed", "mode": "crash",
            "error_type": "oom", "root_line_number": 33,
        }
    ]  # fmt: skip
