"""A job that an earlier midwatch submitted to a real SLURM is restarted once, from the script it kept."""

from __future__ import annotations

import getpass
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from executor_world import World
from faults.upgrade.earlier import JOB, Site, begin, closed, extract, specs, starts
from house.parts import Require
from house.tree import ROOT
from midwatch.agents.launch.job_spec import Started
from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.streams.records import Chunk, Heartbeat, Outcome, SchedulerFact, Spec
from midwatch.streams.records.codec import decode, decode_log
from midwatch.streams.records.effect_keys import effect_key
from midwatch.streams.records.identity import native_id
from processes import wait_for
from slurm_lab.fixture import slurm, slurm_cluster
from slurm_lab.lab import Lab

__all__ = ["slurm", "slurm_cluster"]
pytestmark = [pytest.mark.integration, pytest.mark.slurm]

OVER = ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL")
SHIM = b"'-P' '-m' 'midwatch.agents.run.shim'"


@pytest.fixture
def world(slurm: Lab, tmp_path: Path, stack: Endpoints) -> Iterator[World]:
    """An installation on the lab's SLURM whose processes are of what `Site` has installed."""
    tools = {name: slurm.environment[name] for name in ("SLURM_CONF", "PATH")}
    made = World(tmp_path, stack, environment=tools | {"PYTHONPATH": str(tmp_path / "site")})
    yield made
    made.close()


def _kept(world: World) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (world.settings.state_directory / "scripts").iterdir()}


def _shipped(world: World, incarnation: str) -> tuple[bytes, bool]:
    """All text of one start, and whether its shipper has said that nothing more will come."""
    records = [decode_log(*message) for message in world.logs()]
    own = [record for record in records if record.origin.incarnation == incarnation]
    text = b"".join(record.text for record in own if isinstance(record, Chunk))
    return text, any(isinstance(record, Heartbeat) and record.final for record in own)


def _ran(world: World, slurm: Lab, done: Outcome) -> str:
    """What became of the new job; with its output, where that is no good end."""
    state = slurm.wait_state(done.new_native_id, *OVER)
    output = world.directory / "job" / f"slurm-{done.new_native_id}.out"
    return state if state == "COMPLETED" else f"{state}: {output.read_text()}"


def test_the_script_that_an_earlier_midwatch_kept_is_started_again_once(
    slurm: Lab, world: World, tmp_path: Path, require: Require
) -> None:
    earlier = extract(tmp_path / "earlier", require)
    site, directory, name = Site(tmp_path), tmp_path / "job", f"job-{secrets.token_hex(4)}"
    site.install(earlier)
    assert site.entrance(world.environment).is_relative_to(earlier)
    directory.mkdir()
    (directory / "crash").write_text("the first start ends badly")
    script = directory / "train.sh"
    script.write_text(f"#!/bin/sh\n#SBATCH --ntasks=1\nexec {sys.executable} {JOB} {directory}\n")
    variables = world.environment | {"NCCL_DEBUG": "INFO"}
    incarnation = begin(directory, variables, name, "sbatch", str(script))
    job = f"slurm:{getpass.getuser()}/{name}"
    (signed,) = specs(world.settings, job)
    spec = decode(signed)
    assert isinstance(spec, Spec)
    kept = _kept(world)
    assert [text for text in kept.values() if SHIM in text] == [kept[Path(spec.argv[-1]).name]]

    slurm.wait_state(native_id(incarnation), *OVER)
    site.install(ROOT)
    assert site.entrance(world.environment).is_relative_to(ROOT)
    world.executor()
    started = Started(spec, incarnation)
    world.await_end(started)
    order = world.order(started)
    for _ in range(2):
        world.send(order)
    done = world.await_outcome(order, "done", "failed")

    assert done.state == "done", done.reason
    assert _ran(world, slurm, done) == "COMPLETED"
    key = effect_key(job, 1, "start")
    assert [row.id for row in slurm.queue() if key in row.comment] == [done.new_native_id]
    closed(world.settings, job, signed)
    assert _kept(world) == kept
    first, second = starts(directory)
    assert [Path(first.entrance).is_relative_to(earlier), Path(second.entrance).is_relative_to(ROOT)] == [
        True
    ] * 2
    assert (first.module, second.module) == ("midwatch.agents.run.shim",) * 2, "the script names it"
    assert (first.job, second.job) == (job,) * 2
    assert (first.variable, second.variable) == ("INFO",) * 2
    assert (first.job_name, second.job_name) == (script.name,) * 2
    assert (first.incarnation, second.incarnation) == (incarnation, done.new_incarnation)
    wait_for(lambda: _shipped(world, second.incarnation)[1], "its shipper has said its last")
    assert b"iteration     1000/" in _shipped(world, second.incarnation)[0]
    wait_for(lambda: any(f.ended for f in _of(world, job, second.incarnation)), "the watcher tells its end")
    assert [f.mode for f in _of(world, job, second.incarnation) if f.ended] == ["success"]


def _of(world: World, job: str, incarnation: str) -> list[SchedulerFact]:
    return [fact for fact in world.facts(job) if fact.incarnation == incarnation]
