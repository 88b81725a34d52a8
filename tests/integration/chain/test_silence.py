"""On the real chain, with real shippers: only a hang is a hang."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from integration.chain.burst import Burst, name_for_one_partition
from integration.chain.installation import NODES, WORKERS, Installation, Job, installation
from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.streams.records import Incident, Outcome, SchedulerFact
from processes import alive, wait_for
from side_by_side import Scenes

LIMIT_S = 6
LONG_LIMIT_S = 20
FOUND_S = 150
MUTANT = Path(__file__).with_name("mutant_detect.py")


@pytest.fixture(scope="module")
def watch(stack: Endpoints, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with installation(tmp_path_factory.mktemp("watch"), stack) as made:
        for name in (*WORKERS, "executor"):
            made.start(name)
        made.ready()
        yield made


def _nothing_stays(watch: Installation, tmp_path: Path, **_others: object) -> None:
    watch.finish_jobs(beneath=tmp_path)


scenes = Scenes()
played = scenes.fixture("watch", "stack", after=_nothing_stays)


def _training(
    watch: Installation, directory: Path, limit: int = LIMIT_S, *, name: str = "", options: Sequence[str] = ()
) -> Job:
    limits = (f"--limit=training={limit}s", "--limit=startup=60s", "--limit=evaluation=600s")
    job = watch.run(directory, *limits, *options, name=name)
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


@pytest.mark.capability("S002-04", "N-6", "C-4", "C-5", "S001-57")
@scenes.scene
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


CANCELS = """
policy: frees_the_nodes
modes:
  stall:
    kind: guarded
    guards:
      - do: cancel
        reason: a hang holds the nodes for nothing
"""


@scenes.scene
def test_a_policy_may_cancel_what_hangs_and_nothing_is_started(watch: Installation, tmp_path: Path) -> None:
    (policy := tmp_path / "cancels.yaml").write_text(CANCELS)
    job = _training(watch, tmp_path / "job", options=(f"--policy={policy}",))
    (pid,) = map(int, (job.directory / "starts").read_text().split())
    job.tell("hang")
    wait_for(lambda: not alive(pid), "the job is ended", FOUND_S)
    wait_for(lambda: any(o.state == "done" for o in job.all_of(Outcome)), "the outcome is told", FOUND_S)
    wait_for(lambda: any(f.ended for f in job.all_of(SchedulerFact)), "its end is seen", FOUND_S)
    assert [(command.action, command.reason) for command in job.commands()] == [
        ("cancel", "this policy asks for a cancel: a hang holds the nodes for nothing")
    ]
    assert job.starts() == 1


@pytest.mark.capability("X-14", "N-6")
@scenes.scene
def test_a_stopped_shipper_is_blindness_and_why_says_so(watch: Installation, tmp_path: Path) -> None:
    job = _training(watch, tmp_path / "job")
    job.shipper("n0").send_signal(signal.SIGSTOP)
    job.tell("hang")
    wait_for(lambda: bool(job.findings("blind")), "blindness is found", FOUND_S)
    _quiet_for(job, 3 * LIMIT_S)
    assert _why(watch, job).count("blind") >= 1


@scenes.scene
def test_the_only_node_that_prints_progress_is_needed_for_a_hang(watch: Installation, tmp_path: Path) -> None:
    job = _training(watch, tmp_path / "job")
    job.shipper("n0").kill()
    job.tell("hang")
    wait_for(lambda: bool(job.findings("blind")), "blindness is found", FOUND_S)
    _quiet_for(job, 3 * LIMIT_S)
    assert _why(watch, job).count("blind") >= 1


@scenes.scene
def test_a_node_that_prints_none_may_be_lost(watch: Installation, tmp_path: Path) -> None:
    job = _training(watch, tmp_path / "job")
    job.shipper("n2").kill()
    wait_for(lambda: bool(job.findings("node_silent:n2")), "the node is missed", FOUND_S)
    job.tell("hang")
    wait_for(lambda: job.starts() == 2, "a second start", FOUND_S)
    assert len(job.commands()) == 1


@scenes.scene
def test_a_long_evaluation_is_no_hang(watch: Installation, tmp_path: Path) -> None:
    job = _training(watch, tmp_path / "job")
    job.tell("evaluate")
    _quiet_for(job, 4 * LIMIT_S)
    (job.directory / "evaluate").unlink()
    step = job.step()
    wait_for(lambda: job.step() > step, "it trains on", FOUND_S)
    _quiet_for(job, LIMIT_S)


def _pause_match(watch: Installation, job: Job, seconds: float) -> None:
    """Match stands still, then works all off: beats first, and with them the quorum, then progress.

    All nodes share a partition, and the job holds its breath until their beats wait in it: so whoever takes
    "now minus the last line" for silence is sure to be deceived.
    """
    match, writer = watch.processes["match"], int((job.directory / "starts").read_text().split()[-1])
    _hold_breath(job, writer)
    with Burst(watch.settings, job.name, job.nodes) as burst:
        match.send_signal(signal.SIGSTOP)
        burst.begin()
        # Of each node one that shows the quorum again, and one that may tell of silence.
        wait_for(lambda: burst.beats_of_every_node(2), "beats wait", FOUND_S)
        os.kill(writer, signal.SIGCONT)
    until = time.monotonic() + seconds
    wait_for(lambda: time.monotonic() > until, "the pause", seconds + 10)
    printed = _steps_printed(job)
    match.send_signal(signal.SIGCONT)
    wait_for(lambda: job.step() > printed, "the lines of the pause are worked off", FOUND_S)


def _hold_breath(job: Job, writer: int) -> None:
    """Stops the job with every line seen. A breath held for longer than its limit would be a stall."""
    until = time.monotonic() + FOUND_S
    while True:
        os.kill(writer, signal.SIGSTOP)
        with contextlib.suppress(AssertionError):
            wait_for(lambda: job.step() == _steps_printed(job), "every line is seen", LONG_LIMIT_S / 3)
            return
        printed = _steps_printed(job)
        os.kill(writer, signal.SIGCONT)
        assert time.monotonic() < until, "every line so far is seen"
        wait_for(lambda: job.step() > printed, "it trains on", FOUND_S)  # noqa: B023 - asked at once


def _incidents(job: Job) -> list[Incident]:
    """All that detect ever opened, withdrawn ones too."""
    return job.all_of(Incident)


def _steps_printed(job: Job) -> int:
    lines = (job.directory / "n0.log").read_text().splitlines()
    return int(lines[-1].split()[1].rstrip("/"))


@scenes.scene
def test_a_match_that_stood_still_makes_no_hang(stack: Endpoints, tmp_path: Path) -> None:
    with installation(tmp_path, stack) as made:
        for name in (*WORKERS, "executor"):
            made.start(name)
        made.ready()
        job = _paused_for_long(made, tmp_path / "job")
        _quiet_for(job, LIMIT_S)
        assert _incidents(job) == []


def _paused_for_long(watch: Installation, directory: Path) -> Job:
    name = name_for_one_partition(NODES, watch.settings)
    job = _training(watch, directory, LONG_LIMIT_S, name=name)
    _pause_match(watch, job, 2 * LONG_LIMIT_S)
    return job


@scenes.scene
def test_silence_as_now_minus_the_last_line_calls_a_healthy_job_stalled(
    stack: Endpoints, tmp_path: Path
) -> None:
    """The mutant of the test before: it must fail where the real detect passes."""
    with installation(tmp_path, stack) as made:
        for name in ("match", "decide", "executor"):
            made.start(name)
        made.start("detect", sys.executable, "-P", str(MUTANT), PYTHONPATH=str(MUTANT.parents[2]))
        made.ready()
        job = _paused_for_long(made, tmp_path / "job")
        assert {incident.verdict.mode for incident in _incidents(job)} == {"stall"}


def _why(watch: Installation, job: Job) -> str:
    import subprocess

    command = [sys.executable, "-P", "-m", "midwatch", "why", job.name]
    done = subprocess.run(
        command, env=watch.environment, capture_output=True, text=True, check=False, timeout=60
    )
    return done.stdout
