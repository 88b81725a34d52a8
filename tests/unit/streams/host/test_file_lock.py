"""One holder at a time; the next one waits for the heirs of a dead one, and for no living one."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from midwatch.streams.host.file_lock import LockTaken, lock
from processes import wait_for


def taken_by(path: Path) -> str:
    try:
        os.close(lock(path))
    except LockTaken as refused:
        return refused.holder
    return "nobody"


def test_who_holds_it_is_told_until_it_is_let_go(tmp_path: Path) -> None:
    mine = lock(tmp_path / "lock")
    assert taken_by(tmp_path / "lock") == f"process {os.getpid()} on {socket.gethostname()}"
    os.close(mine)
    assert taken_by(tmp_path / "lock") == "nobody"


def test_nobody_waits_for_a_living_holder(tmp_path: Path) -> None:
    lock(tmp_path / "lock")
    began = time.monotonic()
    with pytest.raises(LockTaken):
        lock(tmp_path / "lock", patience_s=60)
    assert time.monotonic() - began < 30


def heir_of_a_dead_holder(path: Path) -> subprocess.Popen[bytes]:
    """A process that has inherited the lock from one that has ended; it lives until its input ends."""
    code = (
        "import os, subprocess, sys; from pathlib import Path;"
        "from midwatch.streams.host.file_lock import lock;"
        "held = lock(Path(sys.argv[1]));"
        "subprocess.Popen(['cat'], pass_fds=[held])"
    )
    return subprocess.Popen([sys.executable, "-c", code, path], stdin=subprocess.PIPE)


@pytest.mark.parametrize("patience_s", [0.0, 60.0])
def test_the_heirs_of_a_dead_holder_are_waited_for(tmp_path: Path, patience_s: float) -> None:
    file = tmp_path / "lock"
    holder = heir_of_a_dead_holder(file)
    assert holder.wait(60) == 0
    assert taken_by(file) == ""
    assert holder.stdin is not None
    if patience_s:
        holder.stdin.close()
        lock(file, patience_s=patience_s)
    else:
        with pytest.raises(LockTaken):
            lock(file)
        holder.stdin.close()
        wait_for(lambda: taken_by(file) == "nobody", "its heir's end")


def test_a_lock_of_another_host_is_held_by_somebody_who_lives(tmp_path: Path) -> None:
    mine = lock(tmp_path / "lock")
    os.ftruncate(mine, 0)
    os.pwrite(mine, b"1 elsewhere", 0)
    assert taken_by(tmp_path / "lock") == "process 1 on elsewhere"
