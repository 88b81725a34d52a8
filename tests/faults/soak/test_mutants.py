"""The soak convicts: two wrong tables that no test without faults can tell from the right one."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from faults.soak import faults
from faults.soak.mutants import VARIANTS
from faults.soak.theatre import NotSeen, theatre, wait_for
from midwatch.streams.embedded.stack import EmbeddedStack, Endpoints

RATE = 600.0
ROUNDS = 4


@pytest.mark.integration
@pytest.mark.parametrize("variant", VARIANTS)
def test_without_faults_nobody_can_tell_them_apart(
    variant: str, embedded: tuple[EmbeddedStack, Endpoints], tmp_path: Path
) -> None:
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    with theatre(embedded, tmp_path, variant=variant, rate=RATE, seed=seed) as stage:
        stage.start_worker("A")
        wait_for(stage.all_held, "the worker reads everything")
        stage.traffic.start()
        sent = stage.finish(at_least=2000)
        assert stage.end_worker("A") == 0
        stage.start_worker("A")
        wait_for(stage.all_held, "the worker reads everything again")
        assert not stage.outcome(sent).complaints


@pytest.mark.integration
@pytest.mark.parametrize(
    ("variant", "fault"),
    [
        ("commits-before-the-write", faults.kill_before_the_write),
        ("without-the-fence", faults.freeze_before_the_write),
    ],
)
def test_the_soak_convicts(
    variant: str, fault: faults.Fault, embedded: tuple[EmbeddedStack, Endpoints], tmp_path: Path
) -> None:
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    with theatre(embedded, tmp_path, variant=variant, rate=RATE, seed=seed) as stage:
        stage.start_worker("A")
        wait_for(stage.all_held, "the first worker reads everything")
        stage.traffic.start()
        faults.join(stage)
        try:
            for _ in range(ROUNDS):
                fault(stage)
        except NotSeen as stuck:
            print(f"stuck, as a mutant may be: {stuck}")
        found = stage.outcome(stage.settle_somehow())
        print(found.complaints)
        stages = (found.first, found.second)
        assert any(verdict.lost or verdict.doubled for verdict in stages)
