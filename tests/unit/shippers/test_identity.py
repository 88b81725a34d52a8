"""Who a shipper speaks for, by command line, environment and machine."""

from __future__ import annotations

import pytest

from midwatch.shippers.identity import IdentityArguments, Machine, identify
from midwatch.streams.errors import ConfigurationError

MACHINE = Machine("host7", "ann", "boot", "s1", 4711, 99)


def test_the_shim_says_it_outright() -> None:
    origin = identify(
        IdentityArguments(),
        {"MIDWATCH_JOB": "local:bob/run7", "MIDWATCH_INCARNATION": "local:12:34", "MIDWATCH_NODES": "4"},
        MACHINE,
    )
    assert (origin.job, origin.incarnation, origin.nodes, origin.node) == (
        "local:bob/run7",
        "local:12:34",
        4,
        "host7",
    )


def test_slurm_says_it_by_its_variables() -> None:
    environment = {
        "SLURM_JOB_ID": "46",
        "SLURM_ARRAY_JOB_ID": "44",
        "SLURM_ARRAY_TASK_ID": "3",
        "SLURM_RESTART_COUNT": "2",
        "SLURM_CLUSTER_NAME": "leo",
        "SLURM_JOB_USER": "eva",
        "SLURMD_NODENAME": "n17",
        "SLURM_NNODES": "128",
    }
    origin = identify(IdentityArguments(), environment, MACHINE)
    assert (origin.job, origin.incarnation) == ("leo:eva/44_3", "slurm:46:2")
    assert (origin.node, origin.nodes) == ("n17", 128)


def test_ray_says_it_by_its_submission() -> None:
    origin = identify(
        IdentityArguments(), {"RAY_SUBMISSION_ID": "mw-1", "RAY_SESSION_NAME": "session_9"}, MACHINE
    )
    assert (origin.job, origin.incarnation) == ("local:ann/mw-1", "ray:mw-1:session_9")


def test_the_command_line_wins() -> None:
    told = IdentityArguments(job="mine", node="left", nodes=2, cluster="desk")
    origin = identify(told, {"SLURM_JOB_ID": "46", "SLURM_NNODES": "8", "SLURMD_NODENAME": "n1"}, MACHINE)
    assert (origin.job, origin.node, origin.nodes, origin.incarnation) == (
        "desk:ann/mine",
        "left",
        2,
        "slurm:46:0",
    )


def test_a_process_is_an_incarnation_by_pid_and_start() -> None:
    assert identify(IdentityArguments(job="j", pid=4711), {}, MACHINE).incarnation == "local:4711:99"


def test_a_shipper_that_comes_back_is_not_taken_for_a_new_start_of_the_job() -> None:
    assert identify(IdentityArguments(job="j"), {}, MACHINE, "local:1:2").incarnation == "local:1:2"
    assert (
        identify(IdentityArguments(job="j", pid=4711), {}, MACHINE, "local:1:2").incarnation
        == "local:4711:99"
    )
    assert (
        identify(IdentityArguments(job="j"), {"SLURM_JOB_ID": "46"}, MACHINE, "local:1:2").incarnation
        == "slurm:46:0"
    )


def test_a_job_without_a_name_is_refused_with_the_remedy() -> None:
    with pytest.raises(ConfigurationError, match="--job NAME"):
        identify(IdentityArguments(), {}, MACHINE)


def test_no_number_of_nodes_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="SLURM_NNODES"):
        identify(IdentityArguments(job="j"), {"SLURM_NNODES": "many"}, MACHINE)
