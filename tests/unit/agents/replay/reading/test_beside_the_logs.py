"""In a job's folder only logs are judged: programs, settings, pages and a tracker's own logs quote errors."""

from __future__ import annotations

import json
from pathlib import Path, PurePath

import pytest
from click.testing import CliRunner, Result

from midwatch.agents.cli.ask.replay import replay
from midwatch.agents.replay.reading.beside_the_logs import no_log

DONE = "step 7 loss 2.1\nstep 8 loss 2.0\nTraining completed\n"
QUOTED = 'Traceback (most recent call last):\n  File "toy.py", line 3, in <module>\nValueError: no toys\n'


def _replay(*arguments: object) -> Result:
    return CliRunner().invoke(replay, [*map(str, arguments), "--json", "--job", "j"], standalone_mode=False)


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "train.py",
        "build/CMakeFiles/toy.cpp1.ii",
        "tools/toy.jl",
        "conf/toy.yaml",
        "toy.json",
        ".git/logs/HEAD",
        "wandb/run-20260302_115240-toy/logs/debug-internal.log",
        "wandb/latest-run/logs/debug.log",
        "wandb/offline-run-20260302_115240-toy/logs/debug-core.log",
        "wandb/debug.log",
    ],
)
def test_what_stands_beside_the_logs_changes_no_verdict_and_is_told_of(tmp_path: Path, name: str) -> None:
    (tmp_path / "train.log").write_text(DONE)
    beside = tmp_path / name
    beside.parent.mkdir(parents=True, exist_ok=True)
    beside.write_text(QUOTED)
    result = _replay(tmp_path)
    assert json.loads(result.stdout)["verdict"]["state"] == "healthy"
    assert f"{beside}: " in result.stderr
    assert "left out" in result.stderr


def test_a_file_that_is_named_is_read_whatever_it_is(tmp_path: Path) -> None:
    page = tmp_path / "crash.md"
    page.write_text(QUOTED)
    assert json.loads(_replay(page).stdout)["verdict"]["root_line"] == "ValueError: no toys"
    alone = _replay(tmp_path)
    assert "no file is a log" in str(alone.exception)


@pytest.mark.parametrize(
    "name",
    ["train.log", "slurm-77.out", "77.err", "run.o4188", "log.txt", "nohup.out", "train.log.gz",
     "metrics.csv", "wandb/run-20260302_115240-toy/files/output.log", "toy/debug.log"],
)  # fmt: skip
def test_logs_are_read(name: str) -> None:
    assert no_log(PurePath(name), b"step 7\n") is None


def test_records_in_json_are_a_log_and_one_object_is_none() -> None:
    records = b'{"mode": "train", "epoch": 7}\n{"mode": "train", "epoch": 8}\n'
    assert no_log(PurePath("train.log.json"), records) is None
    assert no_log(PurePath("toy.json"), b'{\n  "lr": 7\n}\n') == "settings"
    assert no_log(PurePath("toy.json"), b'{"lr": 7}\n') == "settings"
