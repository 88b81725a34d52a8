"""Whether the job still runs here: its process, or what that left behind."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from midwatch.shippers.processes import JobProcess
from midwatch.streams.host.process_table import living
from processes import wait_for

Python = subprocess.Popen[bytes]


@pytest.fixture
def job() -> Iterator[Python]:
    """A session of its own that lasts until its input ends, as does the child that it leaves behind."""
    code = "import subprocess, sys; subprocess.Popen(['cat']); sys.stdin.read(1)"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, start_new_session=True)
    yield process
    if process.stdin:
        process.stdin.close()
    process.kill()
    process.wait()


def in_session(session: int) -> int:
    return sum(1 for each in living() if each.session == session)


def test_a_job_is_alive_while_anything_of_its_session_is(job: Python) -> None:
    watched = JobProcess(job.pid)
    wait_for(lambda: in_session(job.pid) == 2, "the job's child")
    assert watched.running()
    assert watched.alive()
    job.kill()
    wait_for(lambda: not watched.running(), "the job's end")  # not waited for: a zombie runs nothing
    assert watched.alive()
    assert job.stdin is not None
    job.stdin.close()
    wait_for(lambda: not watched.alive(), "the end of what it left behind")


def test_a_pid_that_was_gone_before_is_nobody() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    watched = JobProcess(process.pid)
    assert not watched.running()
    assert not watched.alive()
