"""A cause with two more steps behind it tells why the job waits then. With more steps it tells nothing."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

MEMORY = "[rank5]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB.\n"
DRIVER = "[rank5]: RuntimeError: CUDA error: an illegal memory access was encountered\n"
WAIT = (
    "[rank0]:[E302 12:52:40.1 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=48, OpType=ALLREDUCE, NumelIn=64, NumelOut=64, Timeout(ms)=600000) ran for "
    "600041 milliseconds before timing out.\n"
)
OTHER = "[rank1]: KeyError: 'shard 7'\n"


def steps(first: int, last: int) -> str:
    return "".join(f"step: {step}  loss: 2.10  grad_norm: 1.02\n" for step in range(first, last + 1))


@pytest.mark.parametrize(("failed", "error_type"), [(MEMORY, "oom"), (DRIVER, "torch")])
def test_ranks_that_print_two_more_steps_and_wait_then_hide_no_cause(
    watch: Watch, failed: str, error_type: str
) -> None:
    done = watch(steps(1, 9) + failed + steps(10, 11) + WAIT)
    assert (done.verdict.error_type, done.decision.action) == (error_type, "stop")
    assert done.verdict.root_line == failed.strip()
    (waited,) = [rival for rival in done.rivals if rival.rule == "torch_watchdog_timeout"]
    assert "only waited" in waited.reason


def test_a_job_that_went_on_for_longer_had_got_over_it(watch: Watch) -> None:
    done = watch(steps(1, 9) + MEMORY + steps(10, 13) + WAIT)
    assert (done.verdict.error_type, done.decision.action) == ("nccl_timeout", "restart")


def test_a_later_cause_is_the_root_and_the_first_one_is_named(watch: Watch) -> None:
    done = watch(steps(1, 9) + MEMORY + steps(10, 11) + OTHER + WAIT)
    assert done.verdict.root_line == OTHER.strip()
    assert any("two more steps behind it" in rival.reason for rival in done.rivals)


def test_a_run_that_only_goes_on_has_no_failure(watch: Watch) -> None:
    assert watch(steps(1, 9) + MEMORY + steps(10, 11)).verdict.state == "healthy"
