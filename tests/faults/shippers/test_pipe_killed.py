"""The shipping process behind a pipe is killed at once, again and again, and the training prints on."""

from __future__ import annotations

import random

import pytest

from faults.chaos.rounds import AT_LEAST_TWO, seed_of
from faults.chaos.tally import counting
from integration.shippers.shipping import numbered
from integration.shippers.test_ship_pipe import MakePipe, line_said, pipe

__all__ = ["pipe"]

pytestmark = pytest.mark.integration

KILLED = b"the shipping process ended with status -9"


def test_a_shipping_process_that_never_begins_costs_the_training_nothing(pipe: MakePipe) -> None:
    seed = seed_of("shippers/child")
    chance = random.Random(seed)
    with counting("shippers", "killed at child", seed) as count:
        for _ in range(AT_LEAST_TWO):
            lines = numbered(0, chance.randint(100, 5_000))
            running = pipe("--drain=1", MIDWATCH_FAILPOINT="child")
            said = line_said(running)  # before the input ends: its time to drain may be over before a start
            passed, rest = running.communicate("".join(f"{line}\n" for line in lines).encode(), timeout=60)
            for _ in range((said + rest).count(KILLED)):
                count.hit("failpoint child")
            assert KILLED in said
            arrived = passed.decode().splitlines()
            count.add(lines=len(lines), lost=len(set(lines) - set(arrived)))
            assert (arrived, running.returncode) == (lines, 0)
