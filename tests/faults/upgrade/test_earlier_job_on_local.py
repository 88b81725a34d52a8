"""A job that an earlier midwatch started and watched is upgraded under, dies, and is restarted once."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.upgrade.earlier import JOB, Site, begin, closed, command_line, extract, specs, starts
from faults.upgrade.restarted_job import SECOND
from house.parts import Require
from house.tree import ROOT
from integration.chain.installation import WORKERS, Installation, Job, installation
from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.agents.schedulers.local.effect_file import Record, read_all
from midwatch.agents.signing import load_verifier, spec_hash
from midwatch.streams.records import Spec
from midwatch.streams.records.codec import decode
from midwatch.streams.records.effect_keys import effect_key
from processes import wait_for

SOON = 90.0
TIMEOUT = (
    "[rank1]:[E1120 03:04:05.678901 ProcessGroupNCCL.cpp:632] [Rank 1] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=414, OpType=ALLREDUCE, NumelIn=16, NumelOut=16, Timeout(ms)=9000) ran for 9003 "
    "milliseconds before timing out."
)


@pytest.fixture
def watch(stack: Endpoints, tmp_path: Path) -> Iterator[Installation]:
    with installation(tmp_path / "watch", stack) as made:
        made.environment["PYTHONPATH"] = str(tmp_path / "site")
        yield made


def _shippers(shim: int) -> set[int]:
    """The processes beside the script that the shim has started."""
    found = set()
    for pid in map(int, Path(f"/proc/{shim}/task/{shim}/children").read_text().split()):
        with contextlib.suppress(OSError):  # a killed one may be gone by now
            if b"\0ship\0" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.add(pid)
    return found


def test_a_running_job_of_an_earlier_midwatch_is_watched_on_and_restarted_once_after_the_upgrade(
    watch: Installation, tmp_path: Path, require: Require
) -> None:
    earlier = extract(tmp_path / "earlier", require)
    site, directory = Site(tmp_path), tmp_path / "job"
    site.install(earlier)
    assert site.entrance(watch.environment).is_relative_to(earlier)
    for worker in WORKERS:
        watch.start(worker, *command_line("worker", worker))
    watch.ready()
    name = f"job-{secrets.token_hex(4)}"
    variables = watch.environment | {"NCCL_DEBUG": "INFO"}
    incarnation = begin(directory, variables, name, sys.executable, str(JOB), str(directory))
    job = Job(watch, name, directory, ())
    wait_for(lambda: len(starts(directory)) == 1, "the job runs", SOON)
    watch.jobs.append(job)
    wait_for(lambda: job.step() > 5, "the earlier midwatch watches it", SOON)
    (first,) = starts(directory)
    (spec,) = specs(watch.settings, first.job)
    assert first.incarnation == incarnation
    assert first.module == "midwatch.agents.run.shim"
    assert Path(first.entrance).is_relative_to(earlier)

    site.install(ROOT)
    assert site.entrance(watch.environment).is_relative_to(ROOT)
    _start_again(watch)
    (shipper,) = _shippers(first.parent)
    os.kill(shipper, signal.SIGKILL)
    wait_for(lambda: _shippers(first.parent) - {shipper}, "the shim has started another shipper", SOON)
    watch.ready()
    job.tell("crash", TIMEOUT)
    key = effect_key(first.job, 1, "start")
    wait_for(lambda: any(e.key == key and e.code is not None for e in _effects(watch)), "it restarts", SOON)

    (second,) = [effect for effect in _effects(watch) if effect.key == key]
    said = (watch.settings.state_directory / "output" / f"{key}.log").read_text()
    assert (second.code, second.argv[-3:]) == (0, (sys.executable, str(JOB), str(directory))), said
    wait_for(
        lambda: [d.action for d in job.decisions() if d.incident] == ["restart", "none"], "its end", SOON
    )
    assert len(_effects(watch)) == 2
    assert len(job.commands()) == 1
    assert job.commands()[0].spec == spec_hash(_signed(watch, spec))
    closed(watch.settings, first.job, spec)
    assert [start.variable for start in starts(directory)] == ["INFO"] * 2
    assert [(s.job, Path(s.entrance).is_relative_to(ROOT)) for s in starts(directory)[1:]] == [
        (first.job, True)
    ]
    assert job.step() == SECOND, "the second start's lines arrive"


def _start_again(watch: Installation) -> None:
    """The workers end, and their supervisor starts them by the same command lines; an executor begins."""
    before = {name: watch.processes[name].pid for name in WORKERS}
    for name in WORKERS:
        watch.kill(name, signal.SIGTERM)
    watch.start("executor")
    wait_for(
        lambda: all(watch.processes[n].pid != before[n] for n in WORKERS), "they are started again", SOON
    )


def _effects(watch: Installation) -> tuple[Record, ...]:
    return read_all(watch.settings.state_directory)


def _signed(watch: Installation, value: bytes) -> Spec:
    spec = decode(value)
    assert isinstance(spec, Spec)
    assert load_verifier(watch.settings.state_directory).accepts(spec)
    return spec
