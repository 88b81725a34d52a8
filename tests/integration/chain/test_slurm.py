"""The whole chain on a real SLURM, counted by `squeue -t all` and by the trainings' own ledgers."""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from integration.chain.installation import Installation, Job, installation, midwatch
from midwatch.agents.demo.judge import Ledger, read_ledger
from midwatch.streams.embedded.stack import Endpoints
from midwatch.streams.records import Outcome
from processes import wait_for
from slurm_lab.lab import Lab

SOON = 150.0


@pytest.fixture
def watch(stack: Endpoints, tmp_path: Path, slurm: Lab) -> Iterator[Installation]:
    with installation(tmp_path / "watch", stack) as made:
        made.environment |= {name: slurm.environment[name] for name in ("SLURM_CONF", "PATH")}
        for name in ("match", "detect", "decide", "executor"):
            made.start(name)
        made.ready()
        yield made


@dataclass
class Training:
    """A toy training, submitted through `midwatch run -- sbatch`."""

    watch: Installation
    directory: Path
    faults: tuple[str, ...] = ()
    iterations: int = 60
    name: str = field(default_factory=lambda: f"job-{secrets.token_hex(4)}")

    def submit(self) -> Job:
        for each in ("checkpoints", "logs"):
            (self.directory / each).mkdir(parents=True)
        script = self.directory / "train.sh"
        faults = " ".join(f"--fault={fault}" for fault in self.faults)
        # Under SLURM the trainer would be one rank of a step; a batch script starts all of them itself.
        script.write_text(
            "#!/bin/bash\n#SBATCH --job-name=twin\n"
            f"#SBATCH --output={self.directory}/slurm-%j.out\n"
            f"env -u SLURM_PROCID -u SLURM_NTASKS {sys.executable} -m midwatch.agents.drill.trainer"
            f" --checkpoint-dir={self.directory}/checkpoints --log-dir={self.directory}/logs --ranks=4"
            f" --iterations={self.iterations} --iteration-ms=50 --save-every=10 --collective-timeout-ms=1500"
            f" {faults}\n"
        )
        about = ("--json", f"--job={self.name}", "--act", f"--log={self.directory}/logs")
        command = midwatch("run", *about, f"--checkpoint-dir={self.directory}/checkpoints")
        done = subprocess.run(
            [*command, "--", "sbatch", str(script)],
            cwd=self.directory,
            env=self.watch.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return Job(self.watch, self.name, self.directory, ())

    def ledger(self) -> Ledger:
        file = self.directory / "checkpoints" / "ledger.jsonl"
        return read_ledger(file.read_text()) if file.exists() else Ledger()


def _decided(job: Job) -> list[str]:
    return [d.action for d in job.decisions() if d.incident]


def _restarted(job: Job) -> Outcome | None:
    story = job.story()
    return next((a.restarted for a in story.attempts if a.restarted), None) if story else None


@pytest.mark.slurm
@pytest.mark.capability("S001-36", "S001-50", "S001-52", "S001-53", "S001-54", "S001-55", "C-6", "S002-05")
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
    wait_for(lambda: _decided(job)[-1:] == ["none"], "its good end is seen", SOON)
    assert _decided(job) == ["restart", "none"]
    wait_for(lambda: _restarted(job) is not None, "the executor's word", SOON)
    outcome = _restarted(job)
    assert outcome is not None
    ids = [row.id for row in slurm.queue() if row.id not in before]
    assert sorted(ids) == sorted(
        {outcome.old_native_id, outcome.new_native_id, twin.ledger().starts[0].native_id}
    )
    assert second.native_id == outcome.new_native_id
    assert len(twin.ledger().starts) == 1
    assert slurm.state(twin.ledger().starts[0].native_id) == "RUNNING"


@pytest.mark.slurm
@pytest.mark.capability("S001-56")
def test_out_of_memory_gives_no_new_job(watch: Installation, tmp_path: Path, slurm: Lab) -> None:
    before = {row.id for row in slurm.queue()}
    training = Training(watch, tmp_path / "job", ("oom@15",))
    job = training.submit()
    wait_for(lambda: _decided(job) == ["stop"], "the refusal", SOON)
    assert [row.state for row in slurm.queue() if row.id not in before] == ["FAILED"]
    assert len(training.ledger().starts) == 1
    assert job.commands() == []


@pytest.mark.slurm
@pytest.mark.capability("S001-35", "S001-64")
def test_what_a_person_cancels_stays_cancelled(watch: Installation, tmp_path: Path, slurm: Lab) -> None:
    before = {row.id for row in slurm.queue()}
    training = Training(watch, tmp_path / "job", iterations=100_000)
    job = training.submit()
    wait_for(lambda: job.step() > 5, "progress is seen", SOON)
    slurm.run("scancel", training.ledger().starts[0].native_id)
    wait_for(lambda: _decided(job) == ["none"], "it is known for what it is", SOON)
    assert [row.state for row in slurm.queue() if row.id not in before] == ["CANCELLED"]
    assert len(training.ledger().starts) == 1
    assert job.commands() == []
