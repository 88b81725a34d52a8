"""Whatever is killed, and wherever: one order, one start, and never two alive."""

from __future__ import annotations

import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from executor_world import World, ledger
from faults.chaos.rounds import AT_A_TIME, ROUNDS, seed_of
from faults.chaos.tally import counting
from midwatch.agents.launch.job_spec import Started
from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.streams.records import Command
from midwatch.streams.records.effect_keys import effect_key
from processes import wait_for

pytestmark = pytest.mark.integration

FAULTS = {
    "the training failed": ("--fault", "exception@15:1"),
    "the training hangs": ("--fault", "hang@15:1"),
    "the new start dies at once": ("--fault", "exception@15:1", "--fault", "sigkill@11:2"),
}
POINTS = {
    "the training failed": ("accept", "claim", "act", "record", "close"),
    "the training hangs": ("accept", "claim", "act", "record", "act:2", "record:2", "close"),
    "the new start dies at once": ("act", "record", "close"),
}
"""A hanging training is ended first and then started, so the executor passes `act` and `record` twice."""
CASES = [(fault, point) for fault, points in POINTS.items() for point in points]


@pytest.mark.capability("N-5")
@pytest.mark.parametrize(("fault", "point"), CASES)
def test_an_executor_killed_on_its_way_starts_the_training_exactly_once(
    fault: str, point: str, stack: Endpoints, tmp_path: Path
) -> None:
    case = f"{fault}, killed at {point}"
    seed = seed_of(f"executor/{case}")

    def play(number: int) -> _Round:
        place = tmp_path / f"round{number}"
        place.mkdir()
        world = World(place, stack)
        try:
            played = _Round(world, fault, point, random.Random(seed + number))
            played.play()
            played.play_strays()
        finally:
            world.close()
        return played

    # Side by side, for a round mostly waits; each has an installation of its own.
    with counting("executor", case, seed) as count, ThreadPoolExecutor(AT_A_TIME) as side_by_side:
        for played in side_by_side.map(play, range(ROUNDS)):
            count.hit(f"failpoint {point.partition(':')[0]}")
            count.add(starts=played.starts, overlaps=played.overlaps, strays=played.strays)
            count.add(lost=max(0, 2 - played.starts), twice=max(0, played.starts - 2))


class _Round:
    """One training, one order, one death of the executor; then orders that must have no effect."""

    def __init__(self, world: World, fault: str, point: str, order: random.Random) -> None:
        self.world = world
        self.fault = fault
        self.point = point
        self.random = order
        self.starts = self.overlaps = self.strays = 0

    def play(self) -> None:
        world, stillborn = self.world, "dies at once" in self.fault
        doomed = world.executor(failpoint=self.point)
        started, checkpoints = world.train(*FAULTS[self.fault])
        wait_for(lambda: bool(ledger(checkpoints, "fault")), "the training fails")
        if "hangs" not in self.fault:
            world.await_end(started)
        order = world.order(started)
        for _ in range(self.random.randint(1, 3)):
            world.send(order)
        assert doomed.wait(timeout=90) == -signal.SIGKILL
        if stillborn and self.point != "act":
            wait_for(lambda: self._ended(started), "the new start is dead before anybody looks")

        world.executor()
        done = world.await_outcome(order, "done", "failed", "refused")
        wait_for(
            lambda: self._ended(started) if stillborn else bool(ledger(checkpoints, "done")),
            "the training is done, or dead again",
        )
        assert done.state == "done"
        assert not [o for o in world.outcomes(order) if o.state in ("failed", "expired")]
        assert [record.key for record in world.effects()][1:] == [effect_key(started.spec.job, 1, "start")]
        self._judge(checkpoints)
        self.started, self.checkpoints, self.order = started, checkpoints, order

    def play_strays(self) -> None:
        """After its time, for an older start, and once more: each is answered, and nothing happens."""
        world, seq = self.world, self.random.randint(2, 9)
        late = world.order(self.started, seq=seq, expires_ms=int(time.time() * 1000) - 1)
        older = world.order(self.started, attempt=1, seq=seq + 1)
        strays: list[tuple[Command, str]] = [(late, "expired"), (older, "refused")]
        self.random.shuffle(strays)
        for stray, _ in strays:
            world.send(stray)
        answers = len(world.outcomes(self.order))
        world.send(self.order)
        for stray, state in strays:
            assert world.await_outcome(stray, "refused", "expired", "accepted").state == state
        wait_for(lambda: len(world.outcomes(self.order)) > answers, "the repeated order is answered")
        assert len(world.effects()) == 2
        self.strays += 3
        self._judge(self.checkpoints)

    def _ended(self, started: Started) -> bool:
        key = effect_key(started.spec.job, 1, "start")
        return any(record.key == key and record.code is not None for record in self.world.effects())

    def _judge(self, checkpoints: Path) -> None:
        self.starts = len(ledger(checkpoints, "start"))
        self.overlaps = len(ledger(checkpoints, "overlap"))
        assert [row["first_step"] for row in ledger(checkpoints, "start")] == [1, 11]
        assert not self.overlaps
