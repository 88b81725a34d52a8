"""The whole chain on a real SLURM: tasks of an array, and a job whose kept environment was changed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from integration.chain.installation import Installation, Job, midwatch
from integration.chain.slurm_training import SOON, Training, decided, restarted, slurm_installation
from midwatch.agents.local.demo.judge import read_ledger
from midwatch.agents.local.embedded.stack import Endpoints
from processes import wait_for
from slurm_lab.lab import Lab

pytestmark = pytest.mark.slurm


@pytest.fixture(scope="module")
def watch(
    stack: Endpoints, tmp_path_factory: pytest.TempPathFactory, slurm_cluster: Lab
) -> Iterator[Installation]:
    with slurm_installation(tmp_path_factory.mktemp("watch"), stack, slurm_cluster) as made:
        yield made


def _array(watch: Installation, slurm: Lab, directory: Path) -> list[Job]:
    """Four trainings as one array. The second and the third die at the same step of their first attempt.

    The fourth must wait for another to end. A person cancels it before it runs.
    """
    directory.mkdir()
    script = directory / "train.sh"
    script.write_text(
        "#!/bin/bash\n#SBATCH --array=1-4%3\n"
        '[ "$SLURM_ARRAY_TASK_ID" = 1 ] || fault=--fault=nccl@25:1\n'
        f"env -u SLURM_PROCID -u SLURM_NTASKS {sys.executable} -m midwatch.agents.drill.trainer"
        f" --checkpoint-dir={directory}/$SLURM_ARRAY_TASK_ID/checkpoints"
        f" --log-dir={directory}/$SLURM_ARRAY_TASK_ID/logs --ranks=2 --iterations=60 --iteration-ms=50"
        " --save-every=10 --collective-timeout-ms=1500 $fault\n"
    )
    for task in "1234":
        for name in ("checkpoints", "logs"):
            (directory / task / name).mkdir(parents=True)
    words = ("--json", "--job=sweep", "--act", f"--checkpoint-dir={directory}/%a/checkpoints")
    done = subprocess.run(
        [*midwatch("run", *words), f"--log={directory}/%a/logs", "--", "sbatch", str(script)],
        cwd=directory,
        env=watch.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    names = [task["job"].rpartition("/")[2] for task in json.loads(done.stdout)["tasks"]]
    assert names == ["sweep_1", "sweep_2", "sweep_3", "sweep_4"]
    slurm.run("scancel", json.loads(done.stdout)["tasks"][3]["native_id"])
    return [Job(watch, name, directory, ()) for name in names]


@pytest.mark.capability("X-50")
def test_each_failed_task_of_an_array_has_its_own_restart_and_a_changed_environment_is_a_hold(
    watch: Installation, tmp_path: Path, slurm: Lab
) -> None:
    before = {row.id for row in slurm.queue()}
    spoiled = Training(watch, tmp_path / "spoiled", ("nccl@25:1",))
    held = spoiled.submit()
    for file in (watch.settings.state_directory / "environments").iterdir():
        file.write_bytes(file.read_bytes() + b"MORE=1\0")
    jobs = _array(watch, slurm, tmp_path / "array")
    for job in jobs[1:3]:
        wait_for(partial(lambda job: decided(job) == ["restart", "none"], job), "its good end", SOON)
    wait_for(lambda: decided(jobs[0]) == ["none"], "the task that never failed", SOON)
    wait_for(lambda: decided(held) == ["restart", "hold"], "nothing can start it", SOON)

    wait_for(jobs[3].decisions, "a word on the task that never ran", SOON)
    assert "restart" not in decided(jobs[3])
    assert jobs[3].commands() == []
    for task, job in enumerate(jobs[:3], 1):
        ledger = read_ledger((tmp_path / "array" / str(task) / "checkpoints" / "ledger.jsonl").read_text())
        assert [start.first_step for start in ledger.starts] == ([1] if task == 1 else [1, 21])
        assert len(job.commands()) == (0 if task == 1 else 1)
        outcome = restarted(job)
        assert (outcome is None) == (task == 1)
        if outcome is not None:
            assert outcome.old_native_id.endswith(f"_{task}")
            assert outcome.new_native_id.endswith(f"_{task}")
    reason = held.decisions()[-1].reason
    assert reason.startswith("the executor could not carry out the command: ")
    assert "the job's environment was changed after it was signed" in reason
    assert len(spoiled.ledger().starts) == 1
    after = {row.id for row in slurm.queue() if not row.id.endswith("_4")} - before
    assert len(after) == 1 + 3 + 2, "the job, three tasks, and two of them once more"
