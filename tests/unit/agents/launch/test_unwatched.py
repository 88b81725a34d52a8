"""`midwatch run` where the watch cannot take the job: it says why, and --anyway starts the job unwatched."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from midwatch.agents.launch import start as launch
from midwatch.agents.launch.job_spec import RunRequest, Unwatched
from midwatch.agents.launch.start import start
from midwatch.agents.schedulers.calls import SystemCaller
from midwatch.streams.settings.file import load_settings

NO_KAFKA = ("--set=kafka.bootstrap=127.0.0.1:9", "--set=redis.url=redis://127.0.0.1:9")


def _run(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "midwatch", "run", f"--state-directory={directory}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, cwd=directory)


def test_without_kafka_it_says_so_and_starts_nothing(tmp_path: Path) -> None:
    done = _run(tmp_path, *NO_KAFKA, "--", "touch", "started")
    assert done.returncode == 4
    (error, remedy) = done.stderr.splitlines()
    assert error == "error: 127.0.0.1:9: Kafka cannot be reached: 127.0.0.1:9: Connection refused"
    assert remedy.startswith("  start it")
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("services", [NO_KAFKA, ()])
def test_anyway_starts_the_job_unwatched(tmp_path: Path, services: tuple[str, ...]) -> None:
    done = _run(tmp_path, "--anyway", *services, "--", "sh", "-c", "echo it runs; exit 7")
    assert (done.returncode, done.stdout) == (7, "it runs\n")
    (line,) = done.stderr.splitlines()
    assert line.startswith("midwatch: the job starts unwatched: ")


def test_anyway_says_what_the_command_line_lacks(tmp_path: Path) -> None:
    done = _run(tmp_path, "--anyway", "--", "no-such-program")
    assert done.returncode == 2
    assert "error: no-such-program: it cannot be started: No such file or directory" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_full_disk_is_said_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(launch, "check_kafka", lambda _: None)
    monkeypatch.setattr(launch, "Reporter", lambda _: _Closed())
    monkeypatch.setattr(launch, "check_room", full)
    settings = load_settings(environment={"MIDWATCH_STATE_DIRECTORY": str(tmp_path)}, here=tmp_path)
    with pytest.raises(Unwatched, match="the state directory cannot be written: No space left") as caught:
        start(RunRequest(("touch", str(tmp_path / "started")), tmp_path), settings, SystemCaller())
    assert caught.value.exit_code == 4
    assert "make room" in caught.value.remedy
    assert not (tmp_path / "started").exists()


class _Closed:
    def close(self) -> None: ...
