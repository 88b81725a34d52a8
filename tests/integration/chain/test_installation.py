"""The tests' own supervisor: it starts a dead worker again, and does not keep quiet about it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.chain.installation import Installation, Job, installation
from integration.chain.training import Training
from midwatch.agents.local.embedded.stack import Endpoints
from processes import alive, wait_for

SLEEPER = (sys.executable, "-c", "import signal; signal.pause()")


def test_a_worker_that_died_by_itself_fails_the_test_and_one_that_was_killed_does_not(
    stack: Endpoints, tmp_path: Path
) -> None:
    with pytest.raises(AssertionError, match=r"^match ended with status 3 by itself"):
        _kill_one_and_lose_one(stack, tmp_path / "watch")


def _kill_one_and_lose_one(stack: Endpoints, directory: Path) -> None:
    with installation(directory, stack) as made:
        made.start("decide", *SLEEPER)
        first = made.processes["decide"]
        made.kill("decide")
        wait_for(lambda: made.processes["decide"] is not first, "it is started again")
        assert made.died == []
        made.start("match", sys.executable, "-c", "raise SystemExit(3)")
        wait_for(lambda: len(made.died) == 2, "it dies, is started again, and dies again")


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process of its own group, so that what aims at a whole group hits no test."""
    with subprocess.Popen(SLEEPER, start_new_session=True) as process:
        yield process
        process.kill()


@pytest.fixture
def watch(stack: Endpoints, tmp_path: Path) -> Iterator[Installation]:
    with installation(tmp_path / "watch", stack) as made:
        yield made


def test_the_end_of_a_job_leaves_the_process_alone_that_has_the_pid_of_an_earlier_start(
    watch: Installation, tmp_path: Path, bystander: subprocess.Popen[bytes]
) -> None:
    job = Job(watch, "job-of-numbers", tmp_path, ())
    own = _of(job.name)
    (tmp_path / "starts").write_text(f"{bystander.pid}\n{own.pid}\n")
    job.end()
    assert own.wait(10) != 0
    assert alive(bystander.pid)


def test_the_end_of_a_training_leaves_the_process_alone_that_has_the_pid_of_an_earlier_start(
    watch: Installation, tmp_path: Path, bystander: subprocess.Popen[bytes]
) -> None:
    training = Training(watch, tmp_path)
    own = _of(training.name)
    (tmp_path / "checkpoints").mkdir()
    rows = [
        {"t": 1.0, "event": "start", "pid": p, "attempt": n, "first_step": 1, "native_id": str(p)}
        for n, p in enumerate((bystander.pid, own.pid), 1)
    ]
    (tmp_path / "checkpoints" / "ledger.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    training.end()
    assert own.wait(10) != 0
    assert alive(bystander.pid)


def _of(job: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        SLEEPER, env={**os.environ, "MIDWATCH_JOB": f"local:ann/{job}"}, start_new_session=True
    )
