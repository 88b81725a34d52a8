"""The whole chain on a real SLURM, counted by `squeue -t all` and by the trainings' own ledgers."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from integration.chain.installation import Installation
from integration.chain.slurm_training import SOON, Training, decided, restarted, shown
from processes import wait_for
from slurm_lab.lab import Lab

pytestmark = pytest.mark.slurm

DOWN_S = 20.0
BACK_S = 60.0


@pytest.fixture
def watch(watch_on_slurm: Installation, slurm: Lab) -> Installation:  # noqa: ARG001 - it is empty then
    return watch_on_slurm


@pytest.mark.capability("S001-52", "S001-53", "S001-55", "C-6", "S002-05", "S001-01", "S002-29")
def test_a_timeout_gives_one_new_job_and_the_twin_of_its_name_is_untouched(
    watch: Installation, tmp_path: Path, slurm: Lab
) -> None:
    before = {row.id for row in slurm.queue()}
    twin = Training(watch, tmp_path / "twin", iterations=100_000)
    twin.submit()
    wait_for(lambda: len(twin.ledger().starts) == 1, "the twin trains", SOON)
    failing = Training(watch, tmp_path / "failing", ("nccl@25:1",))
    job = failing.submit()
    wait_for(lambda: len(failing.ledger().starts) == 2, "the second start", SOON)
    second = failing.ledger().starts[1]
    assert second.first_step == 21
    wait_for(lambda: decided(job)[-1:] == ["none"], "its good end is seen", SOON)
    assert decided(job) == ["restart", "none"]
    wait_for(lambda: restarted(job) is not None, "the executor's word", SOON)
    outcome = restarted(job)
    assert outcome is not None
    ids = [row.id for row in slurm.queue() if row.id not in before]
    assert sorted(ids) == sorted(
        {outcome.old_native_id, outcome.new_native_id, twin.ledger().starts[0].native_id}
    )
    assert second.native_id == outcome.new_native_id
    assert len(twin.ledger().starts) == 1
    assert slurm.state(twin.ledger().starts[0].native_id) == "RUNNING"


@pytest.mark.capability("S001-56", "S001-01")
def test_out_of_memory_gives_no_new_job(watch: Installation, tmp_path: Path, slurm: Lab) -> None:
    before = {row.id for row in slurm.queue()}
    training = Training(watch, tmp_path / "job", ("oom@15",))
    job = training.submit()
    wait_for(lambda: decided(job) == ["stop"], "the refusal", SOON)
    assert [row.state for row in slurm.queue() if row.id not in before] == ["FAILED"]
    assert len(training.ledger().starts) == 1
    assert job.commands() == []


@pytest.mark.capability("S001-35", "S001-64")
def test_what_a_person_cancels_stays_cancelled(watch: Installation, tmp_path: Path, slurm: Lab) -> None:
    before = {row.id for row in slurm.queue()}
    training = Training(watch, tmp_path / "job", iterations=100_000)
    job = training.submit()
    wait_for(lambda: job.step() > 5, "progress is seen", SOON)
    slurm.run("scancel", training.ledger().starts[0].native_id)
    wait_for(lambda: decided(job) == ["none"], "it is known for what it is", SOON)
    assert shown(job) == ("cancelled", 1)
    assert job.findings("blind") == []
    assert [row.state for row in slurm.queue() if row.id not in before] == ["CANCELLED"]
    assert len(training.ledger().starts) == 1
    assert job.commands() == []


def test_a_restart_ordered_while_slurmctld_is_down_is_one_job_soon_after_its_return(
    watch: Installation, tmp_path: Path, slurm: Lab
) -> None:
    before = {row.id for row in slurm.queue()}
    training = Training(watch, tmp_path / "job", ("nccl@50:1",))
    job = training.submit()
    wait_for(lambda: job.step() > 5, "progress is seen", SOON)
    slurm.stop_controller()
    down = time.monotonic()
    wait_for(lambda: bool(training.ledger().faults), "it dies while nobody can ask SLURM", SOON)
    wait_for(lambda: len(job.commands()) == 1, "the process's own word is enough for the order", SOON)
    wait_for(lambda: time.monotonic() > down + DOWN_S, "the outage", SOON)
    assert len(training.native_ids()) == 1
    slurm.start_controller()
    back = time.monotonic()
    wait_for(lambda: len(training.native_ids()) == 2, "the second start", BACK_S)
    took = time.monotonic() - back
    print(f"slurmctld was down for {back - down:.0f} s; one new job {took:.1f} s after its return")
    wait_for(lambda: decided(job) == ["restart", "none"], "its good end is seen", SOON)
    rows = {row.id: row.state for row in slurm.queue() if row.id not in before}
    first, second = training.native_ids()
    assert rows.pop(second) == "COMPLETED"
    # SLURM may hear of its end only after midwatch has told it to end it.
    assert (list(rows), rows[first] in ("FAILED", "CANCELLED")) == ([first], True)
    assert len(job.commands()) == 1
