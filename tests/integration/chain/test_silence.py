"""On the real chain, with real shippers: only a hang is a hang."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.chain.installation import Installation, Job, installation
from midwatch.streams.embedded.stack import Endpoints
from processes import wait_for

LIMIT_S = 6
LIMITS = (f"--limit=training={LIMIT_S}s", "--limit=startup=60s", "--limit=evaluation=600s")
FOUND_S = 150
PAUSE_S = 60
MUTANT = Path(__file__).with_name("mutant_detect.py")


@pytest.fixture(scope="module")
def watch(stack: Endpoints, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with installation(tmp_path_factory.mktemp("watch"), stack) as made:
        for name in ("match", "detect", "decide", "executor"):
            made.start(name)
        made.ready()
        yield made


def _training(watch: Installation, directory: Path) -> Job:
    job = watch.run(directory, *LIMITS)
    job.ship()
    wait_for(lambda: job.step() > 10, "progress is seen", FOUND_S)
    wait_for(lambda: (s := job.story()) is not None and len(s.nodes) == 4, "every node is heard", FOUND_S)
    return job


def _quiet_for(job: Job, seconds: float) -> None:
    """Nothing may be ordered for so long: here the passing of time is the fact."""
    until = time.monotonic() + seconds
    wait_for(lambda: bool(job.commands()) or time.monotonic() > until, "either", seconds + 30)
    assert job.commands() == []
    assert job.starts() == 1


@pytest.mark.capability("S001-19", "S002-04", "S001-50", "N-6", "C-4")
def test_a_hang_is_found_and_restarted_once(watch: Installation, tmp_path: Path) -> None:
    job = _training(watch, tmp_path / "job")
    job.tell("hang")
    wait_for(lambda: job.starts() == 2, "a second start", FOUND_S)
    assert len(job.commands()) == 1
    (incident,) = [a.incident for a in job.story().attempts if a.number == 1]  # type: ignore[union-attr]  # it has one by now
    assert incident is not None
    assert (incident.verdict.mode, incident.verdict.error_type) == ("stall", "hang")
    until = time.monotonic() + 3 * LIMIT_S
    wait_for(lambda: job.starts() > 2 or time.monotonic() > until, "either", 60)
    assert job.starts() == 2


@pytest.mark.capability("X-14")
def test_a_stopped_shipper_is_blindness_and_why_says_so(watch: Installation, tmp_path: Path) -> None:
    job = _training(watch, tmp_path / "job")
    job.shipper("n0").send_signal(signal.SIGSTOP)
    job.tell("hang")
    wait_for(lambda: bool(job.findings("blind")), "blindness is found", FOUND_S)
    _quiet_for(job, 3 * LIMIT_S)
    assert _why(watch, job).count("blind") >= 1


def test_the_only_node_that_prints_progress_is_needed_for_a_hang(watch: Installation, tmp_path: Path) -> None:
    job = _training(watch, tmp_path / "job")
    job.shipper("n0").kill()
    job.tell("hang")
    wait_for(lambda: bool(job.findings("blind")), "blindness is found", FOUND_S)
    _quiet_for(job, 3 * LIMIT_S)
    assert _why(watch, job).count("blind") >= 1


def test_a_node_that_prints_none_may_be_lost(watch: Installation, tmp_path: Path) -> None:
    job = _training(watch, tmp_path / "job")
    job.shipper("n2").kill()
    wait_for(lambda: bool(job.findings("node_silent:n2")), "the node is missed", FOUND_S)
    job.tell("hang")
    wait_for(lambda: job.starts() == 2, "a second start", FOUND_S)
    assert len(job.commands()) == 1


def test_a_long_evaluation_is_no_hang(watch: Installation, tmp_path: Path) -> None:
    job = _training(watch, tmp_path / "job")
    job.tell("evaluate")
    _quiet_for(job, 4 * LIMIT_S)
    (job.directory / "evaluate").unlink()
    step = job.step()
    wait_for(lambda: job.step() > step, "it trains on", FOUND_S)
    _quiet_for(job, LIMIT_S)


def _pause_match(watch: Installation, job: Job, seconds: float) -> None:
    match = watch.processes["match"]
    match.send_signal(signal.SIGSTOP)
    until = time.monotonic() + seconds
    wait_for(lambda: time.monotonic() > until, "the pause", seconds + 10)
    match.send_signal(signal.SIGCONT)
    step = job.step()
    wait_for(lambda: job.step() > step + 10, "the lines of the pause are worked off", 90)


def test_a_match_that_stood_still_makes_no_hang(watch: Installation, tmp_path: Path) -> None:
    job = _training(watch, tmp_path / "job")
    _pause_match(watch, job, PAUSE_S)
    _quiet_for(job, LIMIT_S)


def test_silence_as_now_minus_the_last_line_would_have_killed_a_healthy_job(
    stack: Endpoints, tmp_path: Path
) -> None:
    with installation(tmp_path, stack) as made:
        for name in ("match", "decide"):
            made.start(name)
        made.start("detect", sys.executable, "-P", str(MUTANT))
        made.ready()
        job = _training(made, tmp_path / "job")
        match = made.processes["match"]
        match.send_signal(signal.SIGSTOP)
        until = time.monotonic() + 3 * LIMIT_S
        wait_for(lambda: time.monotonic() > until, "the pause", 60)
        match.send_signal(signal.SIGCONT)
        wait_for(lambda: bool(job.commands()), "the mutant orders a restart", FOUND_S)
        assert job.starts() == 1


def _why(watch: Installation, job: Job) -> str:
    import subprocess

    command = [sys.executable, "-P", "-m", "midwatch", "why", job.name]
    done = subprocess.run(
        command, env=watch.environment, capture_output=True, text=True, check=False, timeout=60
    )
    return done.stdout
