"""The step that takes a shipper to each other node of a SLURM job."""

from __future__ import annotations

import os
from pathlib import Path

from midwatch.agents.launch.other_nodes import OtherNodes, nodes_of, step_argv, step_environment
from midwatch.agents.launch.shim import ShimArguments, node_name, on_all_nodes
from midwatch.agents.schedulers.wrapping import wrapped_script
from processes import wait_for

BATCH = {
    "PATH": os.environ["PATH"],
    "SLURM_JOB_ID": "7",
    "SLURM_JOB_NUM_NODES": "4",
    "SLURM_CPUS_PER_TASK": "8",
    "SRUN_CPUS_PER_TASK": "8",
    "SLURMD_NODENAME": "n0",
    "MIDWATCH_INCARNATION": "slurm:7:0",
}


def test_with_logs_on_every_node_slurm_says_how_many_shippers_there_are() -> None:
    told = ShimArguments("slurm:ann/r", 1, (), ("train",), ("/scratch/%N.log",))
    assert on_all_nodes(told, BATCH).nodes == 4
    assert on_all_nodes(told, {}).nodes == 1, "not in a job of SLURM"
    assert on_all_nodes(ShimArguments("slurm:ann/r", 1, (), ("train",)), BATCH).nodes == 1, (
        "a log that all share"
    )
    assert (nodes_of(BATCH), node_name(BATCH)) == (4, "n0")


def test_the_step_goes_to_the_others_and_no_option_of_the_job_steers_it() -> None:
    argv = step_argv(job="slurm:ann/r", nodes=4, node_logs=("/scratch/%N.log",))
    assert {"--overlap", "--relative=1", "--nodes=3", "--ntasks=3", "--gres=none"} <= set(argv)
    assert argv[argv.index("--node-log") + 1] == "/scratch/%N.log"
    assert "--alone" in argv
    assert set(step_environment(BATCH)) == {"PATH", "SLURM_JOB_ID", "MIDWATCH_INCARNATION"}


def test_the_wrapped_script_names_the_logs_of_every_node() -> None:
    script = wrapped_script(
        b"#!/bin/sh\n#SBATCH -N4\n", inner=Path("/kept/x.sh"), job="slurm:ann/r", nodes=1, log_paths=(),
        node_logs=("/scratch/%N/*.log",),
    )  # fmt: skip
    assert b"'--node-log' '/scratch/%N/*.log'" in script


def test_it_lives_until_the_script_has_ended_and_is_missed_when_it_dies(tmp_path: Path) -> None:
    notes: list[str] = []
    others = OtherNodes(["sh", "-c", "trap '' TERM; cat; exit 3"], BATCH, tmp_path / "log", notes.append)
    others.look()
    assert not others.ended()
    others.end()
    wait_for(others.ended, "it sees the end")
    others.look()
    assert notes == ["the srun step of the shippers ended with status 3"]
    others.kill()


def test_a_cluster_without_srun_is_told_and_the_job_goes_on(tmp_path: Path) -> None:
    notes: list[str] = []
    others = OtherNodes([str(tmp_path / "srun")], BATCH, None, notes.append)
    others.look()
    assert (others.ended(), notes) == (True, ["srun cannot be started: No such file or directory"])
    others.end()
