"""The whole chain is shot at while it rescues a training that dies in every attempt.

The training's own ledger is the judge: with a budget of N it is started N + 1 times, each attempt once, and
never while another one lives, whatever is broken in between.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.chain.injections import INJECTIONS, Scene
from faults.chaos.rounds import FULL, ROUNDS, seed_of
from faults.chaos.tally import counting
from integration.chain.installation import Installation, Job, installation
from integration.chain.training import PROCESSES, Training
from midwatch.streams.embedded.stack import EmbeddedStack, Endpoints
from processes import wait_for

pytestmark = pytest.mark.integration

SOON = 300.0
BUDGET = """
policy: budget
modes:
  crash:
    kind: verdict
    max_restarts: {restarts}
"""
PLANS = {name: (name,) for name in INJECTIONS} if FULL else {"all in turn": tuple(INJECTIONS)}
"""In the long run each fault has a training of its own; else they share one, in an order of the seed's."""


@pytest.fixture
def watch(stack: Endpoints, tmp_path: Path) -> Iterator[Installation]:
    with installation(tmp_path / "watch", stack) as made:
        for name in PROCESSES:
            made.start(name)
        made.ready()
        made.forgive("all that workers live on is broken")
        yield made


@pytest.mark.capability("X-50")
@pytest.mark.parametrize("plan", PLANS)
def test_each_attempt_is_started_once_and_the_budget_holds(
    plan: str, watch: Installation, servers: EmbeddedStack, stack: Endpoints, tmp_path: Path
) -> None:
    seed = seed_of(f"chain/{plan}")
    chance = random.Random(seed)
    options = ("--iterations=400", "--iteration-ms=100", "--save-every=1000", "--fault=nccl@30")
    training, policy = Training(watch, tmp_path / "job", options), tmp_path / "budget.yaml"
    scene = Scene(watch, servers, stack, training.name, chance)
    faults = [name for _ in range(ROUNDS) for name in chance.sample(PLANS[plan], len(PLANS[plan]))]
    with counting("chain", plan, seed) as count:
        try:
            policy.write_text(BUDGET.format(restarts=len(faults)))
            job = training.start(f"--policy={policy}")
            for number, name in enumerate(faults, 1):
                wait_for(lambda n=number: len(training.ledger().starts) >= n, f"start {number}", SOON)  # type: ignore[misc]  # mypy sees no type in a default
                scene.pause(0, 8)
                INJECTIONS[name](scene)
                count.hit(name)
            wait_for(lambda: len(training.ledger().starts) > len(faults), "the last start", SOON)
            wait_for(lambda: _stopped(job), "the budget is spent", SOON)
            starts, overlaps = len(training.ledger().starts), _overlaps(tmp_path / "job")
            wanted = len(faults) + 1
            count.add(starts=starts, overlaps=overlaps)
            count.add(lost=max(0, wanted - starts), twice=max(0, starts - wanted))
            assert (starts, overlaps) == (wanted, 0)
        finally:
            training.end()


def _stopped(job: Job) -> bool:
    decisions = job.decisions()
    return bool(decisions) and decisions[-1].action == "stop"


def _overlaps(directory: Path) -> int:
    rows = (directory / "checkpoints" / "ledger.jsonl").read_text().splitlines()
    return sum(json.loads(row)["event"] == "overlap" for row in rows)
