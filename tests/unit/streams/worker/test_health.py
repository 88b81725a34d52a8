"""The health file: who has one, who renews it, and what a check makes of it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from midwatch.streams.errors import ServiceUnreachable
from midwatch.streams.host.process_table import start_ticks
from midwatch.streams.settings.schema import Settings
from midwatch.streams.worker.health import STALE_S, HealthFile, KafkaProbe, trouble_of
from processes import wait_for

KILLED = """
import os, pathlib
from midwatch.streams.worker.health import HealthFile
HealthFile(pathlib.Path({!r}), "match").write("")
os._exit(9)
"""
pytestmark = pytest.mark.capability("X-14")


def test_a_process_that_says_that_it_works_is_healthy(tmp_path: Path) -> None:
    HealthFile(tmp_path, "match").write("")
    assert trouble_of(tmp_path, "match", time.monotonic()) == ""


def test_its_trouble_is_told(tmp_path: Path) -> None:
    HealthFile(tmp_path, "match").write("it is not in its group t.match")
    assert trouble_of(tmp_path, "match", time.monotonic()).endswith("it is not in its group t.match")


def test_a_changed_word_is_written_at_once(tmp_path: Path) -> None:
    file = HealthFile(tmp_path, "match")
    file.write("")
    file.write("Kafka does not answer its consumer")
    assert "Kafka does not answer" in trouble_of(tmp_path, "match", time.monotonic())


def test_a_file_that_nobody_renews_is_a_process_that_stands_still(tmp_path: Path) -> None:
    HealthFile(tmp_path, "detect").write("")
    later = time.monotonic() + STALE_S + 1
    assert "stands still: it has said nothing for 16 s" in trouble_of(tmp_path, "detect", later)


def test_without_a_process_nothing_is_healthy(tmp_path: Path) -> None:
    """Neither before the first start, nor for a process of another name, nor after a clean end."""
    assert "no match that started to work" in trouble_of(tmp_path, "match", time.monotonic())
    file = HealthFile(tmp_path, "detect")
    file.write("")
    assert trouble_of(tmp_path, "match", time.monotonic()) != ""
    file.remove()
    assert trouble_of(tmp_path, "detect", time.monotonic()) != ""


def test_the_file_of_a_killed_process_speaks_for_nobody_and_goes_with_the_next_start(tmp_path: Path) -> None:
    program = KILLED.format(str(tmp_path))
    subprocess.run([sys.executable, "-c", program], check=False)
    assert len(list(tmp_path.glob("run/match@*.health"))) == 1
    assert trouble_of(tmp_path, "match", time.monotonic()) != ""
    HealthFile(tmp_path, "match").write("")
    assert trouble_of(tmp_path, "match", time.monotonic()) == ""
    assert len(list(tmp_path.glob("run/match@*.health"))) == 1


def test_another_container_with_the_same_volume_is_not_ours_to_judge(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    name = f"decide@another-host@{os.getpid()}@{start_ticks(os.getpid())}.health"
    (tmp_path / "run" / name).write_text('{"at": 0, "trouble": "lost"}')
    HealthFile(tmp_path, "decide").write("")
    assert trouble_of(tmp_path, "decide", time.monotonic()) == ""
    assert (tmp_path / "run" / name).exists()


def test_one_hung_process_of_several_is_enough(tmp_path: Path) -> None:
    HealthFile(tmp_path, "match").write("")
    other = subprocess.Popen(["sleep", "60"])
    name = f"match@{socket.gethostname()}@{other.pid}@{start_ticks(other.pid)}.health"
    (tmp_path / "run" / name).write_text('{"at": 0, "trouble": ""}')
    try:
        assert f"process {other.pid} stands still" in trouble_of(tmp_path, "match", time.monotonic())
    finally:
        other.kill()
        other.wait()


def test_a_broken_file_is_not_healthy(tmp_path: Path) -> None:
    HealthFile(tmp_path, "match").write("")
    (file,) = tmp_path.glob("run/match@*.health")
    file.write_text("{")
    assert "cannot be read" in trouble_of(tmp_path, "match", time.monotonic())


def test_a_full_or_absent_disk_ends_no_worker(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file where the directory should be")
    HealthFile(tmp_path, "match").write("")
    assert trouble_of(tmp_path, "match", time.monotonic()) != ""


def test_the_probe_tells_whether_kafka_answers() -> None:
    down: list[bool] = []

    def ask(*_: object) -> None:
        if down:
            raise ServiceUnreachable("Kafka cannot be reached: refused")

    probe = KafkaProbe(Settings(), every_s=0.01, ask=ask)
    assert probe.trouble == "it is still starting"
    probe.start()
    wait_for(lambda: probe.trouble == "", "Kafka answers")
    down.append(True)
    wait_for(lambda: "cannot be reached" in probe.trouble, "Kafka is away")
    down.clear()
    wait_for(lambda: probe.trouble == "", "Kafka answers again")
    probe.stop()
