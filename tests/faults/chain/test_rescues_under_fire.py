"""The whole chain is shot at while it rescues a training that dies in every attempt.

The training's own ledger is the judge: with a budget of N it is started N + 1 times, each attempt once, and
never while another one lives, whatever is broken in between.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from faults.chain.injections import INJECTIONS, Scene
from faults.chaos.rounds import AT_A_TIME, FULL, ROUNDS, seed_of
from faults.chaos.tally import counting
from integration.chain.installation import Installation, Job, installation
from integration.chain.training import PROCESSES, Training
from midwatch.agents.local.embedded.stack import EmbeddedStack, Endpoints
from processes import wait_for

pytestmark = pytest.mark.integration

SOON = 300.0
NEEDS_A_JOB = "shipper killed"
BUDGET = """
policy: budget
modes:
  crash:
    kind: verdict
    max_restarts: {restarts}
"""


@dataclass(frozen=True)
class Plan:
    """`names`: what one training meets, one fault in each attempt, each fault `rounds` times."""

    names: tuple[str, ...]
    rounds: int


_EACH = min(AT_A_TIME, ROUNDS)
MIXED = {f"all in turn, {n}": Plan(tuple(INJECTIONS), _EACH) for n in range(1, ROUNDS // _EACH + 1)}
ALONE = {name: Plan((name,), ROUNDS) for name in INJECTIONS}
PLANS = MIXED | ALONE if FULL else MIXED
"""All faults in an order of the seed's, where each finds what the one before it has left half done; in the
long run also each fault alone. The longest are played first."""


@pytest.fixture
def watch(stack: Endpoints, tmp_path: Path) -> Iterator[Installation]:
    with installation(tmp_path / "watch", stack) as made:
        for name in PROCESSES:
            made.start(name)
        made.ready()
        made.forgive("all that workers live on is broken")
        yield made


@pytest.mark.capability("X-50")
@pytest.mark.parametrize("name", PLANS)
def test_each_attempt_is_started_once_and_the_budget_holds(
    name: str, watch: Installation, servers: EmbeddedStack, stack: Endpoints, tmp_path: Path
) -> None:
    seed, plan = seed_of(f"chain/{name}"), PLANS[name]
    chance = random.Random(seed)
    options = ("--iterations=400", "--iteration-ms=100", "--save-every=1000", "--fault=nccl@30")
    training, policy = Training(watch, tmp_path / "job", options), tmp_path / "budget.yaml"
    scene = Scene(watch, servers, stack, training.name, chance)
    faults = [fault for _ in range(plan.rounds) for fault in chance.sample(plan.names, len(plan.names))]
    if faults[-1] == NEEDS_A_JOB:  # attempts may be ahead of the faults, and the last of them over by then
        faults.insert(0, faults.pop())
    with counting("chain", name, seed) as count:
        try:
            policy.write_text(BUDGET.format(restarts=len(faults)))
            job = training.start(f"--policy={policy}")
            for number, fault in enumerate(faults, 1):
                wait_for(lambda n=number: len(training.ledger().starts) >= n, f"start {number}", SOON)  # type: ignore[misc]  # mypy sees no type in a default
                scene.pause(0, 8)
                INJECTIONS[fault](scene)
                count.hit(fault)
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
