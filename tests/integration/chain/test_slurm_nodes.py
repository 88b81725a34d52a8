"""A training on several nodes of a real SLURM, each with logs of its own: every node has a shipper."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from integration.chain.installation import Job
from integration.chain.slurm_training import SOON, Training, decided, slurm_installation
from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.streams.records import Incident
from processes import wait_for
from slurm_lab.lab import Lab

pytestmark = pytest.mark.slurm

NODES = {"n0", "n1", "n2"}


def _on_three_nodes(training: Training) -> Job:
    """One rank a node, started by srun; its log lies below a folder of the node's name. There stands, too,
    what the node has to say of the step; what srun says goes to the batch script's output.

    In the first start rank 0 is stuck, so that its node tells of the cancel; in the later ones rank 2 fails.
    """
    place, faults = training.directory, " ".join(f"--fault={fault}" for fault in training.faults)
    (place / "checkpoints").mkdir(parents=True)
    for node in NODES:
        (place / "logs" / node).mkdir(parents=True)
    rank = place / "rank.sh"
    rank.write_text(
        f"#!/bin/sh\ntest -d {place}/checkpoints/step_10 && fails=2 || fails=0\n"
        f"exec {sys.executable} -m midwatch.agents.drill.trainer --checkpoint-dir={place}/checkpoints"
        f" --iterations={training.iterations} --iteration-ms=50 --collective-timeout-ms=4000"
        f" --fault-rank=$fails {faults}\n"
    )
    rank.chmod(0o755)
    script = place / "train.sh"
    script.write_text(
        "#!/bin/bash\n#SBATCH --nodes=3 --ntasks-per-node=1 --cpus-per-task=8 --exclusive\n"
        f"#SBATCH --output={place}/slurm-%j.out\n"
        f"srun --kill-on-bad-exit=1 --open-mode=append --output={place}/logs/n%n/rank_%t.log {rank}\n"
    )
    return training.run(f"--node-log={place}/logs/%N/rank_*.log", "--", "sbatch", str(script))


def _node_of(training: Training, rank: int) -> str:
    (log,) = training.directory.glob(f"logs/*/rank_{rank}.log")
    return log.parent.name


@pytest.mark.capability("S000-06")
def test_every_node_of_each_attempt_is_heard_and_the_verdict_names_the_one_that_failed(
    stack: Endpoints, tmp_path: Path, slurm: Lab
) -> None:
    """Nobody cancelled the first start, though a node says so in its log: srun did, for a task had failed."""
    with slurm_installation(tmp_path / "watch", stack, slurm) as watch:
        training = Training(watch, tmp_path / "job", ("nccl@25:1", "oom@35:2"))
        job = _on_three_nodes(training)
        wait_for(lambda: decided(job)[-1:] == ["stop"], "the refusal", SOON)
        assert decided(job) == ["restart", "stop"]
        first, second = _settled(job)
        assert (first.verdict.error_type, second.verdict.error_type) == ("nccl_timeout", "oom")
        for incident in (first, second):
            assert (incident.verdict.complete, incident.verdict.given_up) == (True, ())
            assert incident.verdict.node == Path(incident.verdict.root_file).parent.name
        assert Path(second.verdict.root_file).name == "rank_2.log"
        assert second.verdict.node == _node_of(training, 2)
        story = job.story()
        assert story is not None
        assert story.nodes == NODES
        assert len(set(training.native_ids())) == 2


def _settled(job: Job) -> list[Incident]:
    story = job.story()
    return [a.incident for a in story.attempts if a.incident] if story else []
