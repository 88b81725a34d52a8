"""Whether the watcher must drain a job that ended: only where its own shipper has not."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from midwatch.agents.schedulers.calls import SystemCaller
from midwatch.agents.watcher.census import JobStart
from midwatch.agents.watcher.drain import LastWords
from midwatch.shippers.files.sent_positions import SentPositions, ShipperDirectory
from midwatch.shippers.ship import checkpoint_directory
from midwatch.streams.host.process_table import start_ticks
from midwatch.streams.records import Spec
from midwatch.streams.records.identity import local_incarnation

JOB = "local:ann/r"


class Noting(SystemCaller):
    """Starts nothing, and keeps what it was to start."""

    def __init__(self) -> None:
        super().__init__()
        self.spawned: list[tuple[Sequence[str], Mapping[str, str]]] = []

    def spawn(self, argv: Sequence[str], environment: Mapping[str, str], **about: object) -> int:
        assert about["reads"], "what is left is read, and nothing is acted on"
        self.spawned.append((argv, environment))
        return 1


@pytest.fixture
def dead() -> int:
    """The pid of a process that is gone."""
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait()
    return child.pid


@pytest.fixture
def state(tmp_path: Path) -> ShipperDirectory:
    """The shipper's own directory of the job on this node, held by nobody."""
    made = ShipperDirectory(checkpoint_directory(tmp_path, JOB, socket.gethostname()))
    made.close()
    return made


def start_of(pid: int) -> JobStart:
    return JobStart(JOB, f"local:{pid}:7", ended=True)


def spec(tmp_path: Path) -> Spec:
    return Spec(
        job=JOB,
        cluster="local",
        argv=("train",),
        cwd=str(tmp_path),
        environment={},
        user="ann",
        log_paths=("rank_0.log",),
        checkpoint_directory="",
        policy="",
        armed=False,
    )


def test_a_start_whose_shipper_died_is_drained_as_that_start(
    tmp_path: Path, state: ShipperDirectory, dead: int
) -> None:
    state.save(SentPositions((), f"local:{dead}:7", "boot"))
    caller = Noting()
    LastWords(tmp_path, caller).ended(start_of(dead), spec(tmp_path), 0.0)
    ((argv, environment),) = caller.spawned
    assert argv[-4:] == ["ship", "--until-pid", "--drain=60", "rank_0.log"]
    assert (environment["MIDWATCH_JOB"], environment["MIDWATCH_INCARNATION"]) == (JOB, f"local:{dead}:7")


def test_a_shipper_that_is_still_there_or_a_job_nobody_knows_is_left_alone(tmp_path: Path, dead: int) -> None:
    caller = Noting()
    words = LastWords(tmp_path, caller)
    words.ended(start_of(dead), spec(tmp_path), 0.0)
    assert not words.owed, "nobody ever shipped for it"
    holder = ShipperDirectory(checkpoint_directory(tmp_path, JOB, socket.gethostname()))
    holder.save(SentPositions((), f"local:{dead}:7", "boot"))
    words.ended(start_of(dead), spec(tmp_path), 0.0)
    assert words.owed, "one runs, and may fail"
    holder.save(SentPositions((), "", "boot"))
    holder.close()
    words.again(set(), 1.0)
    assert not words.owed, "it came to its end"
    words.ended(start_of(dead), None, 2.0)
    assert not words.owed, "no spec"
    assert caller.spawned == []


def test_a_killed_shipper_that_is_not_gone_yet_is_waited_for(
    tmp_path: Path, state: ShipperDirectory, dead: int
) -> None:
    state.save(SentPositions((), f"local:{dead}:7", "boot"))
    caller = Noting()
    words, dying = LastWords(tmp_path, caller), ShipperDirectory(state.path)
    words.ended(start_of(dead), spec(tmp_path), 0.0)
    words.again(set(), 0.5)
    assert caller.spawned == []
    dying.close()
    words.again(set(), 1.0)
    words.again(set(), 1.5)
    assert len(caller.spawned) == 1


def test_a_drain_that_failed_is_begun_anew_ever_more_rarely_until_it_is_done(
    tmp_path: Path, state: ShipperDirectory, dead: int
) -> None:
    state.save(SentPositions((), f"local:{dead}:7", "boot"))
    caller, begun = Noting(), []
    words = LastWords(tmp_path, caller)
    words.ended(start_of(dead), spec(tmp_path), 0.0)
    for now in range(1, 3 * 60):
        before = len(caller.spawned)
        words.again(set(), float(now))
        begun += [now] * (len(caller.spawned) - before)
    assert begun == [5, 15, 35, 75, 135]
    last = ShipperDirectory(state.path)
    last.save(SentPositions((), "", "boot"))
    last.close()
    words.again(set(), 1000.0)
    assert not words.owed
    assert len(caller.spawned) == 6


def test_a_drain_that_always_fails_is_given_up(tmp_path: Path, state: ShipperDirectory, dead: int) -> None:
    state.save(SentPositions((), f"local:{dead}:7", "boot"))
    words = LastWords(tmp_path, Noting())
    words.ended(start_of(dead), spec(tmp_path), 0.0)
    words.again(set(), 3601.0)
    assert not words.owed


def test_what_another_start_follows_is_left_to_its_shipper(
    tmp_path: Path, state: ShipperDirectory, dead: int
) -> None:
    state.save(SentPositions((), f"local:{dead}:7", "boot"))
    caller = Noting()
    words = LastWords(tmp_path, caller)
    words.ended(start_of(dead), spec(tmp_path), 0.0)
    words.again({f"local:{dead}:7"}, 10.0)
    assert not words.owed
    assert len(caller.spawned) == 1


def test_a_shim_that_tells_of_the_end_before_it_is_gone_is_waited_for(
    tmp_path: Path, state: ShipperDirectory
) -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as shim:
        incarnation = local_incarnation(shim.pid, start_ticks(shim.pid) or 0)
        state.save(SentPositions((), incarnation, "boot"))
        caller = Noting()
        words = LastWords(tmp_path, caller)
        words.ended(replace(start_of(shim.pid), incarnation=incarnation), spec(tmp_path), 0.0)
        words.again(set(), 0.5)
        assert caller.spawned == []
    words.again(set(), 1.0)
    words.again(set(), 1.5)
    assert len(caller.spawned) == 1
