"""On a real SLURM: what a new start chose, and from where it really went on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from integration.chain.installation import Installation
from integration.chain.rescued import check_rescue, fail
from integration.chain.resuming import begin, ended, why
from integration.chain.slurm_training import SOON
from processes import wait_for
from slurm_lab.lab import Lab

pytestmark = pytest.mark.slurm


@pytest.fixture
def watch(watch_on_slurm: Installation, slurm: Lab) -> Installation:  # noqa: ARG001 - it is empty then
    return watch_on_slurm


@pytest.mark.capability("S002-05")
def test_why_says_from_which_checkpoint_a_start_went_on_and_that_another_ignored_it(
    watch: Installation, tmp_path: Path
) -> None:
    resumes = begin(watch, tmp_path / "resumes", "resumes", slurm=True)
    ignores = begin(watch, tmp_path / "ignores", "ignores", "--max-restarts=1", slurm=True)
    wait_for(lambda: any("first step" in f.detail for f in resumes.findings("resumed")), "it went on", SOON)
    wait_for(lambda: bool(ignores.findings("checkpoint_ignored")), "it began anew", SOON)
    wait_for(lambda: ended(ignores, "restart", "stop"), "its budget is spent", SOON)

    path = tmp_path / "resumes" / "checkpoints" / "step_40"
    *chosen, judged = resumes.findings("resumed")  # a quick job prints its first step before its heartbeat
    assert all(f.detail.startswith("was told to load the checkpoint of step 40, ") for f in chosen)
    assert judged.detail.startswith("resumed from 40: its first step is 41; the checkpoint was written ")
    assert judged.detail.endswith("; 5 steps lost")
    assert judged.quantities["checkpoint"] == str(path)
    assert re.search(rf"resumed from 40: .*; 5 steps lost \({path}\)", why(resumes))

    (finding,) = (f for f in ignores.findings("checkpoint_ignored") if f.open)
    assert finding.detail.startswith("went on at 1, below the checkpoint of step 40, written ")
    assert "--resume-arg" in why(ignores)
    assert "budget is spent: 1 of 1" in ignores.decisions()[-1].reason


@pytest.mark.capability("S000-12", "S000-13")
def test_a_person_resumes_a_batch_job_with_a_changed_clone_of_its_configuration(
    watch: Installation, tmp_path: Path
) -> None:
    check_rescue(fail(watch, tmp_path / "job", "slurm"))
    assert (tmp_path / "job" / "code" / "train-resume.yaml").exists()
