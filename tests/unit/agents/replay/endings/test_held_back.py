"""What a program had printed before its end may stand behind its traceback, and is no work that went on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from midwatch.agents.cli import run
from midwatch.agents.replay.endings.held_back import HELD_BACK, held_back_behind
from midwatch.agents.replay.reading.log_files import LogFile
from unit.agents.conftest import Watch

PROGRAM = """
import sys

print("loading 40 toys")
for step in range(int(sys.argv[1])):
    print(f"epoch {step // 50} step {step} loss {2 / (step + 1):.4f}")
{"lion": 1}["tiger"]
"""
RAISED = (
    'Traceback (most recent call last):\n  File "<frozen runpy>", line 198, in _run_module_as_main\n'
    '  File "/toy/train.py", line 7, in <module>\n    toys["tiger"]\nKeyError: \'tiger\'\n'
)
OF_A_SCRIPT = RAISED.replace('  File "<frozen runpy>", line 198, in _run_module_as_main\n', "")
EPOCHS = "".join(f"epoch {n} loss {2 / (n + 1):.4f}\n" for n in range(12))
WARNED = "/toy/slow.py:3: UserWarning: slow\n  warnings.warn('slow')\n"


@pytest.mark.parametrize("steps", [30, 400, 1000])
def test_a_module_that_python_runs_is_flushed_behind_its_traceback(
    watch: Watch, tmp_path: Path, steps: int
) -> None:
    (tmp_path / "toys.py").write_text(PROGRAM, encoding="utf-8")
    log = tmp_path / "log"
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with log.open("wb") as sink:
        command = [sys.executable, "-m", "toys", str(steps)]
        subprocess.run(command, cwd=tmp_path, stdout=sink, stderr=sink, env=plain, check=False)
    text = log.read_text(encoding="utf-8")
    assert text.rindex("step") > text.index("KeyError: 'tiger'")
    done = watch(text)
    assert (done.verdict.state, done.verdict.root_line) == ("failed", "KeyError: 'tiger'")
    assert HELD_BACK in done.assumed


def test_all_lines_behind_an_exception_and_none_of_them_above_were_held_back(watch: Watch) -> None:
    done = watch(f"{WARNED}{RAISED}loading toys\n{EPOCHS}")
    assert (done.verdict.state, done.verdict.root_line) == ("failed", "KeyError: 'tiger'")


@pytest.mark.parametrize(
    ("above", "behind"),
    [
        ("", f"{WARNED}{EPOCHS}"),  # a later start wrote to its standard error, too
        ("", "toys: 100%|####| 9/9 [00:01<00:00, 9.1it/s]\n" + EPOCHS),
        (f"loading toys\n{EPOCHS}", f"loading toys\n{EPOCHS}"),  # it counts anew
        ("", EPOCHS * 40),  # more than a buffer holds
        ("", "loading toys\n"),
        ("rank 0 of 2 is here\n", EPOCHS),
        (RAISED, EPOCHS),
    ],
)
def test_what_another_start_may_have_written_was_not_held_back(above: str, behind: str) -> None:
    assert not held_back_behind(LogFile("toy.log", f"{above}{RAISED}{behind}".encode(), 0.0))


def test_a_program_that_told_of_its_success_had_not_failed(watch: Watch) -> None:
    done = watch(f"{WARNED}{RAISED}{EPOCHS}Training completed.\n")
    assert done.verdict.state == "healthy"


@pytest.mark.parametrize("above", ["", EPOCHS])
def test_a_script_flushes_in_front_of_its_traceback(watch: Watch, above: str) -> None:
    later = "".join(f"epoch {n} loss {2 / (n + 1):.4f}\n" for n in range(12, 24))
    assert not held_back_behind(LogFile("toy.log", f"{above}{OF_A_SCRIPT}{later}".encode(), 0.0))
    assert watch(f"{above}{OF_A_SCRIPT}{later}").verdict.state == "healthy"


@pytest.mark.parametrize(("behind", "named"), [(12, True), (300, True), (500, False)])
def test_counts_behind_the_exception_hide_it_from_no_scheduler(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], behind: int, named: bool
) -> None:
    log = tmp_path / "toy.log"
    counts = "".join(f"epoch {n} loss {2 / (n + 1):.4f}\n" for n in range(12, 12 + behind))
    log.write_text(f"{EPOCHS}{RAISED}{counts}", encoding="utf-8")
    run(["replay", "--json", "--exit-code", "1", str(log)])
    root = json.loads(capsys.readouterr().out)["verdict"]["root_line"]
    assert (root == "KeyError: 'tiger'") is named


def test_other_counts_age_a_note_as_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "toy.log"
    rows = "".join(f"iters: {n}, epoch: 1 | loss: {2 / n:.4f}\n" for n in range(1, 500))
    counts = "".join(f"epoch {n} loss {2 / (n + 1):.4f}\n" for n in range(12, 20))
    log.write_text(f"{EPOCHS}{RAISED}{counts}{rows}", encoding="utf-8")
    run(["replay", "--json", "--exit-code", "1", str(log)])
    assert "tiger" not in json.loads(capsys.readouterr().out)["verdict"]["root_line"]


LOGGING_PROGRAM = """
import logging, sys

logging.basicConfig(level=logging.INFO)
log = logging.getLogger("toys")
print("The toys of 1911, in 40 boxes, each of which holds 3.5 kg")
print("Target: 96.5% accuracy of the count")


def count():
    {"lion": 1}["tiger"]


def main():
    for step in range(8):
        log.info("box %d is open", step)
    try:
        count()
    except KeyError:
        log.exception("the toys cannot be counted")
        sys.exit(1)


main()
"""
LOGGED = "".join(f"INFO:toys:box {n} is open\n" for n in range(8))
CAUGHT = "ERROR:toys:the toys cannot be counted\n" + OF_A_SCRIPT.replace("in <module>", "in main")


def test_a_logger_flushes_nothing_that_its_script_had_printed(watch: Watch, tmp_path: Path) -> None:
    script, log = tmp_path / "toys.py", tmp_path / "log"
    script.write_text(LOGGING_PROGRAM, encoding="utf-8")
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with log.open("wb") as sink:
        command = [sys.executable, str(script)]
        subprocess.run(command, stdout=sink, stderr=sink, env=plain, check=False)
    text = log.read_text(encoding="utf-8")
    assert text.rindex("3.5 kg") > text.index("KeyError: 'tiger'")
    done = watch(text)
    assert (done.verdict.state, done.verdict.root_line) == ("failed", "KeyError: 'tiger'")
    assert HELD_BACK in done.assumed


@pytest.mark.parametrize(
    ("above", "behind"),
    [
        (LOGGED, f"each box holds 3.5 kg\n{LOGGED}"),  # the program logs on
        (f"{LOGGED}each box holds 3.5 kg\n", "each box holds 3.5 kg\n"),  # it prints at once
        ("INFO:toys:here\n", "each box holds 3.5 kg\n"),  # it hardly logs
        (LOGGED, "each box holds 3.5 kg\n" * 400),
    ],
)
def test_what_follows_a_logged_exception_may_be_work(above: str, behind: str) -> None:
    assert not held_back_behind(LogFile("toy.log", f"{above}{CAUGHT}{behind}".encode(), 0.0))
