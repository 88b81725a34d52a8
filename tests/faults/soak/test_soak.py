"""Whatever happens to workers, broker and Redis: every record counts once, at both stages."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from faults.chaos.rounds import FULL, ROUNDS, seed_of
from faults.chaos.tally import counting
from faults.soak import faults
from faults.soak.theatre import theatre
from midwatch.agents.local.embedded.stack import EmbeddedStack, Endpoints

EVENTS = 20_000
RATE = 250.0 if FULL else 70.0
"""Records a second: in the short form they last no longer than all the faults do."""
PLANS = {faults.name_of(each): (each,) for each in faults.ALL} if FULL else {"all in turn": faults.ALL}
"""In the long run each fault has traffic of its own; else they share one, in an order of the seed's."""


@pytest.mark.integration
@pytest.mark.parametrize("plan", PLANS)
def test_effects_are_exactly_once_through_every_fault(
    plan: str, embedded: tuple[EmbeddedStack, Endpoints], tmp_path: Path
) -> None:
    seed = seed_of(f"agents/{plan}")
    order = random.Random(seed)
    with (
        counting("agents", plan, seed) as count,
        theatre(embedded, tmp_path, variant="honest", rate=RATE, seed=seed) as stage,
    ):
        stage.start_worker("A")
        stage.all_read("the first worker reads everything")
        stage.traffic.start()
        faults.join(stage)
        for _ in range(ROUNDS):
            for fault in order.sample(PLANS[plan], len(PLANS[plan])):
                stage.at_work()
                began = time.monotonic()
                fault(stage)
                done = time.monotonic()
                count.hit(faults.name_of(fault))
                caught_up_s = stage.catches_up()
                print(f"{fault.__name__:24} {done - began:5.1f} s, level {caught_up_s:4.1f} s later")
        sent = stage.finish(at_least=EVENTS)
        stage.at_work()  # one that has only just been started would not know SIGTERM yet
        codes = [stage.end_worker(name) for name in list(stage.workers)]
        found = stage.outcome(sent)
        counts = {name: stage.counter(name) for name in ("replayed", "fenced", "recovered", "below_mark")}
        print(f"sent {sent}, repeated ids {found.published.repeated}, exit codes {codes}, {counts}")
        count.add(
            events=sent,
            lost=found.first.lost + found.second.lost,
            twice=found.first.doubled + found.second.doubled,
            disordered=found.first.disordered + found.second.disordered,
            repeats=found.published.repeated,
        )
        assert not found.complaints
        assert sent >= EVENTS
        assert codes == [0, 0]
        assert stage.committed(stage.first) == stage.end(stage.first)
        assert stage.committed(stage.second) == stage.end(stage.second)
