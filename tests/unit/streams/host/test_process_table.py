"""What is said of processes, whatever they are called and however far gone they are."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from midwatch.streams.host.process_table import boot_id, group_members, living, process_status, start_ticks
from processes import wait_for

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture
def oddly_named(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process whose name is cut in the midst of a character, as the kernel does, and has brackets."""
    program = os.fsencode(tmp_path) + b"/a) Z \xc3(\xff"
    shutil.copy(os.fsencode(shutil.which("cat") or "cat"), program)
    process = subprocess.Popen([program], stdin=subprocess.PIPE, start_new_session=True)
    yield process
    process.kill()
    process.wait()


def test_a_name_of_any_bytes_hides_no_process(oddly_named: subprocess.Popen[bytes]) -> None:
    status = process_status(oddly_named.pid)
    assert status is not None
    assert (status.group, status.session, status.lives) == (oddly_named.pid, oddly_named.pid, True)
    assert group_members(oddly_named.pid) == [oddly_named.pid]
    assert oddly_named.pid in {each.pid for each in living()}


def test_what_waits_to_be_reaped_has_a_past_and_no_life() -> None:
    process = subprocess.Popen(["cat"], stdin=subprocess.PIPE, start_new_session=True)
    began = start_ticks(process.pid)
    assert began is not None
    process.kill()
    wait_for(lambda: start_ticks(process.pid) is None, "its end")
    status = process_status(process.pid)
    assert status is not None
    assert (status.start_ticks, status.lives) == (began, False)
    assert group_members(process.pid) == []
    process.wait()
    assert process_status(process.pid) is None


def test_this_process_started_once_in_this_boot() -> None:
    assert start_ticks(os.getpid()) == start_ticks(os.getpid())
    assert boot_id() == boot_id() != ""
