"""Trainings on a real Ray head of which restarts are ordered, and the judge of what became of them."""

from __future__ import annotations

import random
import signal
import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from executor_world import ledger
from faults.chaos.rounds import FULL
from faults.chaos.tally import Count
from midwatch.streams.records import Command
from midwatch.streams.records.identity import native_id
from processes import wait_for
from ray_lab.world import RayWorld, Trained

FAULTS = {
    "it failed": ("--fault=exception@15:1",),
    "it hangs": ("--fault=hang@15:1",),
    "its new start dies at once": ("--fault=exception@15:1", "--fault=sigkill@11:2"),
}
RANDOM = "killed at random"
DIES_S = 120.0
DONE_S = 180.0


@dataclass
class RayOrder:
    """A training that has failed or hangs, and the command to start it again."""

    trained: Trained
    command: Command


@dataclass
class RayStage:
    """An installation, and all that was ordered of it."""

    world: RayWorld
    dice: random.Random
    count: Count
    ordered: list[RayOrder] = field(default_factory=list)

    def order(self, kind: str = "") -> RayOrder:
        """One more training of which one restart is ordered."""
        kind = kind or self.dice.choice(list(FAULTS))
        return self._order(kind, self.world.train_on_ray(*FAULTS[kind]))

    def order_each(self) -> None:
        """One training of each kind, side by side, of each of which one restart is ordered."""
        started = {kind: self.world.train_on_ray(*words) for kind, words in FAULTS.items()}
        for kind, trained in started.items():
            self._order(kind, trained)

    def _order(self, kind: str, trained: Trained) -> RayOrder:
        wait_for(lambda: bool(ledger(trained.checkpoints, "fault")), "the training fails", 60)
        if kind != "it hangs":
            self.world.lab.wait_status(trained.first, "FAILED")
        command = self.world.order(trained.started)
        self.world.send(command)
        self.ordered.append(RayOrder(trained, command))
        return self.ordered[-1]

    def busy(self) -> bool:
        return any(not self.done(each) for each in self.ordered)

    def done(self, each: RayOrder) -> bool:
        return any(outcome.state == "done" for outcome in self.world.outcomes(each.command))

    def kill_at(self, point: str) -> None:
        """One executor that lives until it comes by this point, with work that leads it there.

        In the long run each death has a command of its own.
        """
        passes = self.dice.choice((1, 2)) if point in ("act", "record") else 1
        victim = self.world.executor(failpoint=f"{point}:{passes}")
        if FULL:
            self.order("it hangs" if passes > 1 else "")
        deadline = time.monotonic() + DIES_S
        while victim.poll() is None:
            assert time.monotonic() < deadline, f"the executor never came by {point}:{passes}"
            if not self.busy():
                self.order("it hangs" if passes > 1 else "")
            wait_for(lambda: victim.poll() is not None or not self.busy(), point, DIES_S)
        assert victim.returncode == -signal.SIGKILL, self.world.log.read_text()[-3000:]
        self.count.hit(f"failpoint {point}")

    def kill_at_random(self) -> None:
        """One executor that is killed from outside, somewhere on its way with a command."""
        victim = self.world.executor()
        if not self.busy():
            self.order()
        until = time.monotonic() + self.dice.uniform(0.0, 4.0)
        wait_for(lambda: time.monotonic() > until, "a random moment", 60)
        victim.kill()
        victim.wait()
        self.count.hit(RANDOM)

    def settle(self) -> None:
        """Every command comes to its end, and every new start to its own; then each comes once more."""
        self.world.executor()
        wait_for(lambda: not self.busy(), "every command is done", DONE_S)
        for each in self.ordered:
            wait_for(partial(over, each.trained), "the new start has come to its end", DONE_S)
        answers = {each.command.id: len(self.world.outcomes(each.command)) for each in self.ordered}
        for each in self.ordered:
            self.world.send(each.command)
        for each in self.ordered:
            wait_for(
                lambda e=each: len(self.world.outcomes(e.command)) > answers[e.command.id],  # type: ignore[misc]  # mypy infers no type for a lambda's default
                "an answer",
                60,
            )
            assert self.world.outcomes(each.command)[-1].state == "done"

    def judge(self) -> None:
        """Of each training two starts and two submissions, never two alive, and nobody else's."""
        jobs = {job["submission_id"]: job for job in self.world.lab.submissions() if self._is_ours(job)}
        for each in self.ordered:
            starts = ledger(each.trained.checkpoints, "start")
            overlaps = len(ledger(each.trained.checkpoints, "overlap"))
            self.count.add(starts=len(starts), twice=max(0, len(starts) - 2), lost=max(0, 2 - len(starts)))
            self.count.add(overlaps=overlaps)
            assert [row["first_step"] for row in starts] == [1, 11]
            assert overlaps == 0
        first = {native_id(each.trained.started.incarnation) for each in self.ordered}
        assert set(jobs) == first | {each.trained.key for each in self.ordered}

    def _is_ours(self, job: dict[str, Any]) -> bool:
        names = {each.trained.started.spec.job for each in self.ordered}
        return (job["metadata"] or {}).get("midwatch_job") in names


def over(trained: Trained) -> bool:
    """Whether both starts have ended by the training's own word."""
    return len(ledger(trained.checkpoints, "fault")) + len(ledger(trained.checkpoints, "done")) == 2
