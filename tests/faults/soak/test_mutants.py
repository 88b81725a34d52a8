"""The soak convicts: two wrong tables that no test without faults can tell from the right one."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from faults.soak import faults
from faults.soak.theatre import theatre
from midwatch.agents.local.embedded.stack import EmbeddedStack, Endpoints

RATE = 400.0
ROUNDS = 3
MUTANTS = ("commits-before-the-write", "without-the-fence")


@pytest.mark.integration
@pytest.mark.parametrize("variant", MUTANTS)
def test_without_faults_nobody_can_tell_them_apart(
    variant: str, embedded: tuple[EmbeddedStack, Endpoints], tmp_path: Path
) -> None:
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    with theatre(embedded, tmp_path, variant=variant, rate=RATE, seed=seed) as stage:
        stage.start_worker("A")
        stage.all_read("the worker reads everything")
        stage.traffic.start()
        sent = stage.finish(at_least=2000)
        assert stage.end_worker("A") == 0
        assert not stage.outcome(sent).complaints


@pytest.mark.integration
@pytest.mark.parametrize(
    ("variant", "fault"),
    list(zip(MUTANTS, (faults.kill_before_the_write, faults.freeze_before_the_write), strict=True)),
)
def test_the_soak_convicts(
    variant: str, fault: faults.Fault, embedded: tuple[EmbeddedStack, Endpoints], tmp_path: Path
) -> None:
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    with theatre(embedded, tmp_path, variant=variant, rate=RATE, seed=seed) as stage:
        stage.start_worker("A")
        stage.all_read("the first worker reads everything")
        stage.traffic.start()
        faults.join(stage)
        for _ in range(ROUNDS):
            stage.at_work()
            fault(stage)
        found = stage.outcome(stage.finish())
        print(found.complaints)
        stages = (found.first, found.second)
        assert any(verdict.lost or verdict.doubled for verdict in stages)
