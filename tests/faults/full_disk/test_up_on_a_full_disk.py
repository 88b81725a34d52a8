"""`midwatch up` on a disk that fills: it says so, and goes on by itself once there is room."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.up.conftest import Up
from processes import wait_for

pytestmark = pytest.mark.integration


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 400 MB in memory, of which `up` needs 256 to start."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small file system")
    command = ["mount", "-t", "tmpfs", "-o", "size=400m", "tmpfs", str(tmp_path)]
    if subprocess.run(command, check=False, capture_output=True).returncode != 0:
        pytest.skip("this machine lets nobody mount a file system")
    yield tmp_path
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


def _fill(file: Path) -> None:
    with file.open("wb", buffering=0) as out, contextlib.suppress(OSError):
        while out.write(bytes(1 << 16)):
            pass


def test_it_says_so_and_goes_on_by_itself(small_disk: Path) -> None:
    up = Up(small_disk)
    try:
        up.await_ready()
        filler = small_disk / "filler"
        _fill(filler)
        wait_for(lambda: f"the disk of {up.state} is full" in up.said, "the full disk is said", 60)
        refused = up.midwatch("run", "--", "true")
        assert refused.returncode == 4
        assert refused.stderr.startswith("error: ")
        assert "Traceback" not in refused.stderr
        anyway = up.midwatch("run", "--anyway", "--", "sh", "-c", "echo it runs; exit 7")
        assert (anyway.returncode, anyway.stdout) == (7, "it runs\n")
        assert anyway.stderr.startswith("midwatch: the job starts unwatched: ")
        filler.unlink()
        wait_for(lambda: "has room again" in up.said, "the room is said", 60)
        wait_for(lambda: _runs(up), "a job is taken again", 90)
        assert "Traceback" not in up.said
    finally:
        up.stop()


def _runs(up: Up) -> bool:
    return up.midwatch("run", "--job", "after", "--", "true").returncode == 0
