"""The state directory is private, used by one stack at a time, and never written over when it is not ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from midwatch.agents.local.embedded.errors import (
    DiskFull,
    NotWritable,
    StateDirectoryDamaged,
    StateDirectoryInUse,
    StateDirectoryNewer,
)
from midwatch.agents.local.embedded.state_directory import ServiceDirectory

HOLD = """
import sys
from pathlib import Path
from midwatch.agents.local.embedded.state_directory import ServiceDirectory
held = ServiceDirectory(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def opened(path: Path) -> Iterator[ServiceDirectory]:
    state = ServiceDirectory(path)
    try:
        yield state
    finally:
        state.close()


def test_it_is_made_for_its_owner_only(tmp_path: Path) -> None:
    with opened(tmp_path / "a" / "b") as state:
        assert state.path.stat().st_mode & 0o777 == 0o700
        state.write_node(state.read_node("4.3.1"))
        assert (state.path / "node.json").stat().st_mode & 0o777 == 0o600


def test_one_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir(mode=0o755)
    with opened(tmp_path / "state") as state:
        assert state.path.stat().st_mode & 0o777 == 0o700


def test_password_and_ports_are_remembered(tmp_path: Path) -> None:
    with opened(tmp_path) as state:
        node = replace(state.read_node("4.3.1"), kafka_port=20001, redis_port=20002)
        state.write_node(node)
        assert len(node.password) >= 32
        assert node.password not in repr(node)
    with opened(tmp_path) as state:
        assert state.read_node("4.4.0") == node


def test_two_state_directories_have_two_passwords(tmp_path: Path) -> None:
    with opened(tmp_path / "one") as one, opened(tmp_path / "two") as two:
        assert one.read_node("4.3.1").password != two.read_node("4.3.1").password


def test_a_second_process_is_refused_and_told_who_holds_it(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(StateDirectoryInUse) as caught:
            ServiceDirectory(tmp_path)
        assert f"process {holder.pid}" in caught.value.what
        assert caught.value.where == str(tmp_path)
        holder.kill()
        holder.wait()
    with opened(tmp_path):
        """The kernel has freed it."""


def test_a_fork_of_the_holder_does_not_hold_it(tmp_path: Path) -> None:
    state = ServiceDirectory(tmp_path)
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.read(read, 1)
        os._exit(0)
    try:
        state.close()
        with opened(tmp_path) as mine:
            assert os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None  # the fork lives
            assert os.pread(mine.lock_descriptor, 300, 0).startswith(f"{os.getpid()} ".encode())
    finally:
        os.write(write, b".")
        os.waitpid(pid, 0)
        os.close(read)
        os.close(write)


def test_servers_of_a_killed_stack_are_waited_for_and_then_named(tmp_path: Path) -> None:
    with opened(tmp_path) as state:
        os.ftruncate(state.lock_descriptor, 0)  # as if only its servers held it now
        with pytest.raises(StateDirectoryInUse, match="a stack that was killed"):
            ServiceDirectory(tmp_path, patience=0.1)


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(NotWritable) as caught:
        ServiceDirectory(tmp_path / "file" / "state")
    assert "Not a directory" in caught.value.what
    assert caught.value.remedy


def test_a_read_only_place_is_refused() -> None:
    with pytest.raises(NotWritable):
        ServiceDirectory(Path("/proc/self/midwatch-state"))


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a directory away")
def test_another_users_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 12345, 12345)
    with pytest.raises(NotWritable, match="another user"):
        ServiceDirectory(tmp_path / "theirs")


def test_a_full_disk_is_told_before_kafka_meets_it(tmp_path: Path) -> None:
    with pytest.raises(DiskFull) as caught:
        ServiceDirectory(tmp_path, least_room=1 << 62)
    assert "MiB are free" in caught.value.what
    with opened(tmp_path):
        """The refusal has freed it."""


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"password": 7}', '{"password": "x", "kafka_version": "4.3.1"}']
)
def test_a_damaged_memory_is_named_and_not_written_over(tmp_path: Path, content: str) -> None:
    (tmp_path / "node.json").write_text(content)
    with opened(tmp_path) as state, pytest.raises(StateDirectoryDamaged) as caught:
        state.read_node("4.3.1")
    assert caught.value.where == str(tmp_path / "node.json")
    assert (tmp_path / "node.json").read_text() == content


@pytest.mark.parametrize("newer", [{"format": 2}, {"kafka_version": "4.10.0"}])
def test_what_a_newer_one_wrote_is_refused(tmp_path: Path, newer: dict[str, object]) -> None:
    with opened(tmp_path) as state:
        state.write_node(state.read_node("4.3.1"))
        file = tmp_path / "node.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | newer | {"unknown": 1}))
        with pytest.raises(StateDirectoryNewer) as caught:
            state.read_node("4.3.1")
        assert "upgrade midwatch" in caught.value.remedy
