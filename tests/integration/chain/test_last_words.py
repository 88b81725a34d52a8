"""The shipper dies together with the job: what the job printed last stands in the verdict all the same."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.chain.installation import Installation, Job, installation, midwatch
from midwatch.agents.local.demo.judge import settled
from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.streams.records import Incident
from processes import wait_for

pytestmark = pytest.mark.integration

SCRIPT = Path(__file__).with_name("last_words.py")
SOON = 150.0


@pytest.fixture(scope="module")
def watch(stack: Endpoints, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with installation(tmp_path_factory.mktemp("watch"), stack) as made:
        for name in ("match", "detect", "decide", "executor"):
            made.start(name)
        made.ready()
        yield made


def _started(watch: Installation, directory: Path) -> Job:
    directory.mkdir()
    name = f"job-{directory.name}"
    about = ("--json", f"--job={name}")
    done = subprocess.run(
        # As a user's: a shipper begins within three intervals, or its node is rightly given up.
        [
            *midwatch("run", *about),
            "--set=ship.interval=3s",
            "--",
            sys.executable,
            str(SCRIPT),
            str(directory),
        ],
        cwd=watch.directory,
        env=watch.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    job = Job(watch, name, directory, ())
    wait_for(lambda: job.step() > 5, "progress is seen", SOON)
    return job


def _settled(job: Job) -> Incident | None:
    story = job.story()
    attempt = next((a for a in story.attempts if a.number == 1), None) if story else None
    return settled(attempt)


@pytest.mark.parametrize("who", ["shipper", "all"])
def test_a_traceback_of_the_last_100_ms_stands_in_the_verdict(
    watch: Installation, tmp_path: Path, who: str
) -> None:
    job = _started(watch, tmp_path / who)
    if who == "all":
        job.tell("all")
    job.tell("now")
    wait_for(lambda: _settled(job) is not None, "the incident is settled", SOON)
    found = _settled(job)
    assert found is not None
    pid = (job.directory / "starts").read_text().strip()
    assert f"of start {pid} does not divide" in found.verdict.root_line
    assert found.verdict.complete, found.verdict.given_up
