"""The shim beside a real script, with a shipper that a test can watch and kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from midwatch.agents.launch import shim
from processes import alive, wait_for, wakes

Run = Callable[..., subprocess.Popen[bytes]]

SHIPPER = """
import os, sys, time
from pathlib import Path
place = Path(os.environ["TEST_PLACE"])
(place / "arguments").write_text(" ".join(sys.argv[1:]))
(place / "names").write_text(" ".join(os.environ[n] for n in ("MIDWATCH_JOB", "MIDWATCH_INCARNATION")))
with (place / "starts").open("a") as file:
    file.write(f"{os.getpid()}\\n")
pid = int(os.environ["MIDWATCH_JOB_PID"])
while os.path.exists(f"/proc/{pid}/stat") and open(f"/proc/{pid}/stat").read().split()[2] != "Z":
    time.sleep(0.02)  # between two looks at the job
(place / "drained").write_text("all")
"""


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """The shim as a process group of its own, `midwatch ship` replaced by the small program above."""
    package = tmp_path / "python" / "midwatch_test_ship.py"
    package.parent.mkdir()
    package.write_text(SHIPPER)
    start = f"""
import os, signal, subprocess, sys, time
from midwatch.agents.launch import shim
shipper = shim.Shipper.__init__
def instead(self, told, environment, script):
    shipper(self, told, environment, script)
    self._argv = [sys.executable, {str(package)!r}, *self._argv[self._argv.index("ship"):]]
shim.Shipper.__init__ = instead
class Signalled(subprocess.Popen):
    def __init__(self, *told, **more):
        super().__init__(*told, **more)
        if ready := os.environ.pop("TEST_SIGNALLED", ""):
            while not os.path.exists(ready):
                time.sleep(0.02)  # between two looks at the file
            os.kill(os.getpid(), signal.SIGUSR1)
subprocess.Popen = Signalled
sys.exit(shim.main(sys.argv[1:]))
"""

    begun: list[subprocess.Popen[bytes]] = []

    def go(*arguments: str, **more: str) -> subprocess.Popen[bytes]:
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "MIDWATCH_"))}
        environment |= {
            "TEST_PLACE": str(tmp_path),
            "MIDWATCH_STATE_DIRECTORY": str(tmp_path / "state"),
            **more,
        }
        with (tmp_path / "output").open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-c", start, "--job", "local:ann/r", *arguments],
                env=environment,
                cwd=tmp_path,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        begun.append(process)
        return process

    yield go
    for process in begun:
        if process.poll() is None:  # the test failed; the shipper ends with the script
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def starts(place: Path) -> list[int]:
    file = place / "starts"
    return [int(line) for line in file.read_text().split()] if file.exists() else []


@pytest.mark.parametrize(("command", "code"), [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137)])
def test_the_scripts_exit_code_is_returned_once_the_last_lines_are_shipped(
    run: Run, tmp_path: Path, command: str, code: int
) -> None:
    assert run("--", "sh", "-c", f"sleep 0.3; {command}").wait(30) == code
    assert (tmp_path / "drained").read_text() == "all"


def test_a_shipper_that_dies_is_started_again_and_the_script_goes_on(run: Run, tmp_path: Path) -> None:
    process = run("--", "sh", "-c", "while [ ! -e stop ]; do sleep 0.05; done; exit 4")
    wait_for(lambda: len(starts(tmp_path)) == 1, "a shipper")
    os.kill(starts(tmp_path)[0], signal.SIGKILL)
    wait_for(lambda: len(starts(tmp_path)) == 2, "another shipper")
    (tmp_path / "stop").touch()
    assert process.wait(30) == 4


def test_while_the_script_trains_the_shim_hardly_takes_a_core(run: Run, tmp_path: Path) -> None:
    until = "while [ ! -e {} ]; do sleep 0.02; done"
    script = f"{until.format('began')}; sleep 1.5; echo > ended; {until.format('stop')}"
    process = run("--", "sh", "-c", script)
    wait_for(lambda: starts(tmp_path), "script and shipper")
    before = wakes(process.pid)
    (tmp_path / "began").touch()
    wait_for((tmp_path / "ended").exists, "one and a half seconds of training")
    assert wakes(process.pid) - before < 40
    (tmp_path / "stop").touch()
    assert process.wait(30) == 0


def test_a_shipper_that_died_often_in_the_course_of_weeks_is_still_started_again_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    now = 0.0
    monkeypatch.setattr(
        shim, "time", SimpleNamespace(monotonic=lambda: now, strftime=time.strftime, gmtime=time.gmtime)
    )
    told = shim.ShimArguments("local:ann/r", 1, (str(tmp_path / "log"),), ())
    shipper = shim.Shipper(told, {"MIDWATCH_INCARNATION": "local:1:1", "HOME": str(tmp_path)}, os.getpid())
    shipper._argv = [sys.executable, "-c", "raise SystemExit(1)"]
    shipper.look()
    for day in range(1, 8):
        now = day * 86_400.0
        assert shipper._process is not None
        shipper._process.wait(30)
        shipper.look()
        now += 0.2
        shipper.look()
        assert shipper._process is not None, f"the death of day {day}"


def test_what_ends_the_whole_group_does_not_stop_the_drain(run: Run, tmp_path: Path) -> None:
    process = run("--", "sh", "-c", "trap 'exit 5' TERM; echo up > ready; while :; do sleep 0.05; done")
    wait_for(lambda: (tmp_path / "ready").exists() and bool(starts(tmp_path)), "script and shipper")
    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait(30) == 5
    assert (tmp_path / "drained").exists()
    wait_for(lambda: not alive(starts(tmp_path)[-1]), "no shipper is left")


def test_own_output_and_the_named_logs_are_shipped_once_each(run: Run, tmp_path: Path) -> None:
    assert (
        run("--log", "/var/log/a.log", "--log", str(tmp_path / "output"), "--", "sleep", "0.3").wait(30) == 0
    )
    assert (tmp_path / "arguments").read_text() == f"ship --until-pid /var/log/a.log {tmp_path}/output"


def test_a_signal_to_the_batch_script_alone_reaches_the_persons_script(run: Run, tmp_path: Path) -> None:
    process = run("--", "sh", "-c", "trap 'exit 6' USR1; echo up > ready; while :; do sleep 0.05; done")
    wait_for((tmp_path / "ready").exists, "the script")
    os.kill(process.pid, signal.SIGUSR1)
    assert process.wait(30) == 6


def test_a_signal_in_the_midst_of_the_start_is_not_lost(run: Run) -> None:
    """It comes when the script is up and the shim does not yet know its process."""
    script = "trap 'exit 6' USR1; echo up > ready; while :; do sleep 0.05; done"
    assert run("--", "sh", "-c", script, TEST_SIGNALLED="ready").wait(30) == 6


@pytest.mark.parametrize(
    ("variables", "incarnation"),
    [
        ({"SLURM_JOB_ID": "12"}, "slurm:12:0"),
        ({"SLURM_JOB_ID": "12", "SLURM_RESTART_COUNT": "2"}, "slurm:12:2"),
        ({"SLURM_JOB_ID": "14", "SLURM_ARRAY_JOB_ID": "12", "SLURM_ARRAY_TASK_ID": "1"}, "slurm:12_1:0"),
    ],
)
def test_the_start_is_named_as_the_scheduler_names_it(
    run: Run, tmp_path: Path, variables: dict[str, str], incarnation: str
) -> None:
    assert run("--", "sleep", "0.3", **variables).wait(30) == 0
    assert (tmp_path / "names").read_text() == f"local:ann/r {incarnation}"


def test_a_job_without_a_name_has_that_of_its_first_start_at_every_later_one(
    run: Run, tmp_path: Path
) -> None:
    arguments = ("--job", "slurm:ann", "--", "sleep", "0.3")
    assert run(*arguments, SLURM_JOB_ID="12").wait(30) == 0
    assert (tmp_path / "names").read_text() == "slurm:ann/12 slurm:12:0"
    assert run(*arguments, SLURM_JOB_ID="15", MIDWATCH_JOB="slurm:ann/12").wait(30) == 0
    assert (tmp_path / "names").read_text() == "slurm:ann/12 slurm:15:0"


def test_a_program_that_is_not_there_ends_as_a_shell_says_it(run: Run) -> None:
    assert run("--", "no-such-program-here").wait(30) == 127


def test_a_script_that_is_not_the_signed_one_is_not_run(run: Run, tmp_path: Path) -> None:
    forged = tmp_path / f"{'0' * 64}.sh"
    forged.write_text("#!/bin/sh\ntouch harm\n")
    forged.chmod(0o755)
    assert run("--", str(forged)).wait(30) == 3
    assert not (tmp_path / "harm").exists()
