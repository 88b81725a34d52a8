"""Whatever happens to workers, broker and Redis: every record counts once, at both stages."""

from __future__ import annotations

import os
import random
import secrets
import time
from pathlib import Path

import pytest

from faults.soak import faults
from faults.soak.theatre import theatre, wait_for
from midwatch.streams.embedded.stack import EmbeddedStack, Endpoints

ROUNDS = int(os.environ.get("MIDWATCH_SOAK_ROUNDS", "1"))
"""How often every fault is done; the long soak is this test with more rounds."""
EVENTS = 20_000
RATE = 350.0


@pytest.mark.integration
def test_effects_are_exactly_once_through_every_fault(
    embedded: tuple[EmbeddedStack, Endpoints], tmp_path: Path
) -> None:
    seed = int(os.environ.get("MIDWATCH_SOAK_SEED") or secrets.randbits(32))
    print(f"seed {seed}: MIDWATCH_SOAK_SEED={seed} repeats it")
    order = random.Random(seed)
    with theatre(embedded, tmp_path, variant="honest", rate=RATE, seed=seed) as stage:
        stage.start_worker("A")
        wait_for(stage.all_held, "the first worker reads everything")
        stage.traffic.start()
        faults.join(stage)
        for _ in range(ROUNDS):
            for fault in order.sample(faults.ALL, len(faults.ALL)):
                stage.at_work()
                began = time.monotonic()
                fault(stage)
                done = time.monotonic()
                caught_up_s = stage.catches_up()
                print(f"{fault.__name__:24} {done - began:5.1f} s, level {caught_up_s:4.1f} s later")
        sent = stage.finish(at_least=EVENTS)
        codes = [stage.end_worker(name) for name in list(stage.workers)]
        found = stage.outcome(sent)
        counts = {name: stage.counter(name) for name in ("replayed", "fenced", "recovered", "below_mark")}
        print(f"sent {sent}, repeated ids {found.published.repeated}, exit codes {codes}, {counts}")
        assert not found.complaints
        assert sent >= EVENTS
        assert codes == [0, 0]
        assert stage.committed(stage.first) == stage.end(stage.first)
        assert stage.committed(stage.second) == stage.end(stage.second)
