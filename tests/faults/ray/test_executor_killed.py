"""On a real Ray head the executor is killed wherever it can be: one start a command, never two alive."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.chaos.rounds import FULL, ROUNDS, seed_of
from faults.chaos.tally import Count, counting
from faults.ray.orders import RANDOM, RayStage
from midwatch.agents.local.embedded.stack import Endpoints
from ray_lab.lab import RayLab
from ray_lab.world import RayWorld

pytestmark = pytest.mark.integration

POINTS = ("accept", "claim", "act", "record", "close")
CASE = "the executor killed"
AT_RANDOM = 5 if FULL else 1
"""Kills from outside a round, beside one at each point."""


@pytest.fixture
def stage(ray_head: RayLab, tmp_path: Path, stack: Endpoints) -> Iterator[RayStage]:
    world = RayWorld(tmp_path, stack, ray_head)
    seed = seed_of(f"ray/{CASE}")
    yield RayStage(world, random.Random(seed), Count("ray", CASE, seed))
    world.close()


@pytest.mark.capability("N-5")
def test_an_executor_killed_at_every_point_and_at_random_makes_one_start_of_each_command(
    stage: RayStage,
) -> None:
    with counting("ray", CASE, stage.count.seed) as stage.count:
        schedule = [*POINTS, *[RANDOM] * AT_RANDOM] * (ROUNDS if FULL else 1)
        if FULL:
            stage.dice.shuffle(schedule)
        else:  # in the order in which a command comes by them: three commands then lead to all points
            schedule.insert(stage.dice.randrange(len(schedule)), schedule.pop())
            stage.order_each()
        for point in schedule:
            if point == RANDOM:
                stage.kill_at_random()
            else:
                stage.kill_at(point)
        stage.settle()
        stage.judge()
