"""On a real SLURM: a job that reaches its time limit goes on where its policy says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.chain.installation import Installation
from integration.chain.slurm_training import SOON, Training, decided
from midwatch.agents.cli.printing import verdict_phrase
from midwatch.streams.records import Incident
from processes import wait_for
from slurm_lab.lab import Lab

pytestmark = pytest.mark.slurm

POLICY = "policy: goes_on\non_time_limit: continue\nmodes:\n  crash:\n    kind: verdict\n"


@pytest.fixture
def watch(watch_on_slurm: Installation, slurm: Lab) -> Installation:  # noqa: ARG001 - it is empty then
    return watch_on_slurm


def test_a_time_limit_is_told_as_that_and_the_job_goes_on_from_its_checkpoint(
    watch: Installation, tmp_path: Path
) -> None:
    training = Training(watch, tmp_path / "job", iterations=100_000)
    script = training.script()
    policy = tmp_path / "goes_on.yaml"
    policy.write_text(POLICY)
    job = training.run(
        f"--policy={policy}",
        f"--log={training.directory}/logs",
        *("--", "sbatch", "--time=1", str(script)),
    )
    wait_for(lambda: decided(job) == ["restart"], "the limit is reached, and it may go on", SOON)
    (settled,) = (i for i in job.all_of(Incident) if i.state == "settled" and i.revision == 1)
    assert verdict_phrase(settled.verdict).startswith("time limit reached at step ")
    assert str(training.directory / "checkpoints") in settled.verdict.remedy
    wait_for(lambda: len(training.ledger().starts) == 2, "the second start", SOON)
    assert training.ledger().starts[1].first_step > 1
    assert job.findings("blind") == []
    assert len(job.commands()) == 1
