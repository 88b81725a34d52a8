"""On a real SLURM the executor is killed wherever it can be: each order is one new job, never two alive.

Each round kills it once at each point and once at a random moment, in a drawn order. The judges are
`squeue -t all` and the trainings' own ledgers.
"""

from __future__ import annotations

import random
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from executor_world import TRAINER, World, ledger
from faults.chaos.rounds import ROUNDS, seed_of
from faults.chaos.tally import Count, counting
from midwatch.agents.launch.job_spec import Started
from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.streams.records import Command
from midwatch.streams.records.effect_keys import effect_key
from midwatch.streams.records.identity import native_id
from processes import wait_for
from slurm_lab.lab import Lab, Row

pytestmark = [pytest.mark.integration, pytest.mark.slurm]

POINTS = ("accept", "claim", "act", "record", "close")
CASE = "on SLURM"
FAULTS = {
    "it failed": ("--fault=exception@15:1",),
    "it hangs": ("--fault=hang@15:1",),
    "its new start dies at once": ("--fault=exception@15:1", "--fault=sigkill@11:2"),
}
RANDOM = "killed at random"
DIES_S = 120.0
DONE_S = 180.0


@dataclass
class Ordered:
    """A training that has failed or hangs, and the order to start it again."""

    started: Started
    checkpoints: Path
    order: Command

    @property
    def key(self) -> str:
        return effect_key(self.started.spec.job, 1, "start")


@dataclass
class Stage:
    """The executor's installation, and all that was ordered of it."""

    slurm: Lab
    world: World
    dice: random.Random
    count: Count
    ordered: list[Ordered] = field(default_factory=list)
    rows: dict[str, Row] = field(default_factory=dict)

    def look(self) -> None:
        """`squeue -t all`, kept: slurmctld forgets a job five minutes after its end."""
        self.rows |= {row.id: row for row in self.slurm.queue()}

    def order(self) -> None:
        """One more training of which one restart is ordered: it died, or it hangs and must be ended first."""
        kind = self.dice.choice(list(FAULTS))
        name = f"train-{secrets.token_hex(4)}"
        checkpoints = self.world.directory / f"{name}-checkpoints"
        words = [sys.executable, str(TRAINER), f"--checkpoint-dir={checkpoints}", "--iterations=30"]
        words += ["--iteration-ms=20", "--collective-timeout-ms=500", *FAULTS[kind]]
        script = self.world.directory / f"{name}.sh"
        script.write_text(f"#!/bin/bash\n#SBATCH --ntasks=2\nsrun --kill-on-bad-exit=1 {' '.join(words)}\n")
        started = self.world.run("sbatch", str(script), job=name, checkpoint_directory=str(checkpoints))
        wait_for(lambda: bool(ledger(checkpoints, "fault")), "the training fails", 60)
        if kind != "it hangs":
            self.slurm.wait_state(native_id(started.incarnation), "FAILED")
        order = self.world.order(started)
        self.world.send(order)
        self.ordered.append(Ordered(started, checkpoints, order))

    def busy(self) -> bool:
        """Whether some order is not yet reported as done."""
        return any(not self.done(each) for each in self.ordered)

    def done(self, each: Ordered) -> bool:
        return any(outcome.state == "done" for outcome in self.world.outcomes(each.order))

    def kill_at(self, point: str) -> None:
        """One executor that lives until it comes by this point, with work that leads it there."""
        passes = self.dice.choice((1, 2)) if point in ("act", "record") else 1
        victim = self.world.executor(failpoint=f"{point}:{passes}")
        # A submission that was under way at a kill is waited for; meanwhile there is another order.
        if point in ("accept", "claim", "act"):
            self.order()
        deadline = time.monotonic() + DIES_S
        while victim.poll() is None:
            assert time.monotonic() < deadline, f"the executor never came by {point}:{passes}"
            if not self.busy():
                self.order()
            wait_for(lambda: victim.poll() is not None or not self.busy(), point, DIES_S)
        assert victim.returncode == -signal.SIGKILL, self.world.log.read_text()[-3000:]
        self.count.hit(f"failpoint {point}")

    def kill_at_random(self) -> None:
        """One executor that is killed from outside, somewhere on its way with an order."""
        victim = self.world.executor()
        if not self.busy():
            self.order()
        until = time.monotonic() + self.dice.uniform(0.0, 10.0)
        wait_for(lambda: time.monotonic() > until, "a random moment", 60)
        _kill(victim)
        self.count.hit(RANDOM)


def _kill(victim: subprocess.Popen[bytes]) -> None:
    victim.kill()
    victim.wait()


@pytest.fixture
def stage(slurm: Lab, tmp_path: Path, stack: Endpoints, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    for name in ("SLURM_CONF", "PATH"):
        monkeypatch.setenv(name, slurm.environment[name])
    tools = {name: slurm.environment[name] for name in ("SLURM_CONF", "PATH")}
    # So many jobs at once are what the breaker is for; here each of them has a cause of its own.
    tools |= {"MIDWATCH_EXECUTOR__STORM_JOBS": "1000", "MIDWATCH_EXECUTOR__COMMANDS_PER_HOUR": "1000"}
    world = World(tmp_path, stack, environment=tools)
    seed = seed_of(f"executor/{CASE}")
    yield Stage(slurm, world, random.Random(seed), Count("executor", CASE, seed))
    world.close()


@pytest.mark.capability("N-5", "C-6")
def test_an_executor_killed_at_every_point_and_at_random_makes_one_job_of_each_order(
    slurm: Lab, stage: Stage
) -> None:
    before = {row.id for row in slurm.queue()}
    with counting("executor", CASE, stage.count.seed) as stage.count:
        _play(stage)
        _judge(stage, before)


def _play(stage: Stage) -> None:
    schedule = [point for point in (*POINTS, RANDOM) for _ in range(ROUNDS)]
    stage.dice.shuffle(schedule)
    for point in schedule:
        stage.look()
        if point == RANDOM:
            stage.kill_at_random()
        else:
            stage.kill_at(point)
    stage.world.executor()
    wait_for(lambda: not stage.busy(), "every order is done", DONE_S)
    for each in stage.ordered:
        wait_for(partial(_over, each), "the new start has come to its end", DONE_S)
    _delivered_again(stage)


def _over(each: Ordered) -> bool:
    return len(ledger(each.checkpoints, "fault")) + len(ledger(each.checkpoints, "done")) == 2


def _judge(stage: Stage, before: set[str]) -> None:
    stage.look()
    rows = [row for row in stage.rows.values() if row.id not in before]
    made = {each.key: [row for row in rows if each.key in row.comment] for each in stage.ordered}
    for each in stage.ordered:
        starts, overlaps = ledger(each.checkpoints, "start"), ledger(each.checkpoints, "overlap")
        stage.count.add(starts=len(starts), twice=max(0, len(starts) - 2), lost=max(0, 2 - len(starts)))
        stage.count.add(overlaps=len(overlaps))
        # A held twin that was taken away never ran.
        ran = [row for row in made[each.key] if row.state != "CANCELLED"]
        assert [row.id for row in ran] == [starts[1]["native_id"]]
        assert [row["first_step"] for row in starts] == [1, 11]
        assert overlaps == []
    first = {native_id(each.started.incarnation) for each in stage.ordered}
    assert {row.id for row in rows} == first | {row.id for jobs in made.values() for row in jobs}


def _delivered_again(stage: Stage) -> None:
    """Each order comes once more, and is answered as it was."""
    for each in stage.ordered:
        before = len(stage.world.outcomes(each.order))
        stage.world.send(each.order)
        wait_for(lambda e=each, n=before: len(stage.world.outcomes(e.order)) > n, "an answer", 60)  # type: ignore[misc]  # as above
        assert stage.world.outcomes(each.order)[-1].state == "done"
