"""Troubles that users named at the start: their types, what is no failure, and what is shown beside one."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

TYPES = [
    pytest.param(
        "0: HorovodBroadcast_dense_bias_0 [missing ranks: 3]",
        "deadlock",
        marks=pytest.mark.capability("S001-58"),
        id="deadlock",
    ),
    pytest.param(
        "RuntimeError: Timed out initializing process group in store based barrier on rank: 1",
        "distributed_timeout",
        marks=pytest.mark.capability("S001-61"),
        id="distributed_timeout",
    ),
    pytest.param(
        "RuntimeError: [/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.3]:201",
        "communication",
        marks=pytest.mark.capability("S001-62"),
        id="communication",
    ),
    pytest.param(
        "[PG 0 Rank 6] ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress",
        "watchdog_timeout",
        marks=pytest.mark.capability("S001-63"),
        id="watchdog_timeout",
    ),
    pytest.param(
        "step 40: loss: nan",
        "numerical_instability",
        marks=pytest.mark.capability("S001-66"),
        id="numerical_instability",
    ),
    pytest.param(
        "ValueError: the batch is empty", "exception", marks=pytest.mark.capability("S001-67"), id="exception"
    ),
    pytest.param(
        "RuntimeError: CUDA error: device-side assert triggered",
        "torch",
        marks=pytest.mark.capability("S001-68"),
        id="torch",
    ),
    pytest.param(
        "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of the step tasks have been OOM"
        " Killed.",
        "host_oom",
        marks=pytest.mark.capability("S001-71"),
        id="host_oom",
    ),
]


@pytest.mark.parametrize(("line", "error_type"), TYPES)
def test_it_is_of_the_type_that_policies_name(watch: Watch, line: str, error_type: str) -> None:
    verdict = watch(line).verdict
    assert (verdict.state, verdict.error_type, verdict.root_line) == ("failed", error_type, line)


@pytest.mark.capability("S001-72")
def test_a_kernel_that_hangs_the_card_is_known_by_its_signal(watch: Watch) -> None:
    """The driver's limit on a card with a display ends the same kernel again, so nobody is woken in vain."""
    line = "RuntimeError: CUDA error: the launch timed out and was terminated"
    done = watch("".join(f"step: {step}  loss: 2.{step}\n" for step in range(8)) + line)
    assert (done.verdict.rule, done.verdict.error_type) == ("cuda_hang", "torch")
    assert (done.verdict.transient, done.decision.action) == (None, "hold")


@pytest.mark.capability("S001-69")
def test_an_error_of_nccl_is_a_failure_and_its_warning_only_context(watch: Watch) -> None:
    warning = watch("n4:88:90 [0] misc/socket.cc:58 NCCL WARN odd value")
    assert [(hit.rule, hit.role) for hit in warning.hits] == [("nccl_warning", "context")]
    assert warning.verdict.state != "failed"
    error = watch("torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:268, internal error")
    assert (error.verdict.state, error.verdict.rule) == ("failed", "nccl_error")


@pytest.mark.capability("S000-28")
def test_an_actor_that_died_with_its_spot_node_would_be_started_again(watch: Watch) -> None:
    done = watch("ray.exceptions.RayActorError: The actor died because its node has died. Node Id: 9f")
    assert (done.verdict.transient, done.decision.action) == (True, "restart")


@pytest.mark.capability("S004-32")
def test_a_first_start_without_a_checkpoint_is_no_failure(watch: Watch) -> None:
    log = (
        "WARNING: could not find the metadata file /ckpt/latest.txt\n"
        "    will not load any checkpoints and will start from random\n"
    )
    assert watch(log).verdict.state != "failed"


@pytest.mark.capability("S002-13", "S002-39")
def test_a_silent_fall_back_to_tcp_is_shown_beside_the_timeout_with_the_way_to_mend_it(watch: Watch) -> None:
    log = (
        "n4:88:90 [0] NCCL INFO Using network Socket\n"
        "[rank0]:[E302 11:52:40.1 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective operation"
        " timeout: WorkNCCL(SeqNum=48, OpType=ALLGATHER) ran for 600041 milliseconds before timing out.\n"
    )
    done = watch(log)
    assert done.verdict.error_type == "nccl_timeout"
    (fallback,) = [hit for hit in done.hits if hit.rule == "nccl_tcp_fallback"]
    assert "NCCL_NET" in fallback.remedy
    assert "LD_LIBRARY_PATH" in fallback.remedy
    assert "TCP" in done.verdict.remedy
