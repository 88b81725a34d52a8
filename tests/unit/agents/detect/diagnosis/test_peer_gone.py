"""What NCCL raises where a peer is gone: behind a step it may pass, before any step nothing shows that."""

from __future__ import annotations

from unit.agents.conftest import Watch

STEPS = "step 40 loss 2.31\nstep 41 loss 2.30\nstep 42 loss 2.30\n"
RAISED = (
    "[rank1]: torch.distributed.DistBackendError: NCCL error in: ../toy/NCCLUtils.hpp:77, "
    "remote process exited or there was a network error, NCCL version 2.21.5"
)


def test_a_peer_that_is_gone_behind_a_step_is_worth_a_restart(watch: Watch) -> None:
    done = watch(f"{STEPS}{RAISED}\n")
    assert (done.verdict.error_type, done.verdict.root_line) == ("nccl", RAISED)
    assert (done.verdict.transient, done.decision.action) == (True, "restart")


def test_before_any_step_it_waits_for_a_person(watch: Watch) -> None:
    done = watch(f"loading the toy\n{RAISED}\n")
    assert (done.verdict.transient, done.decision.action) == (None, "hold")


def test_another_rank_that_says_why_it_went_is_the_cause(watch: Watch) -> None:
    why = "[rank0]: ValueError: the toy has 3 wheels"
    done = watch(f"{STEPS}{RAISED}\n{why}\n")
    assert (done.verdict.root_line, done.decision.action) == (why, "stop")


def test_any_other_error_of_nccl_stays_of_unknown_transience(watch: Watch) -> None:
    other = RAISED.replace("remote process exited or there was a network error", "unhandled system error")
    done = watch(f"{STEPS}{other}\n")
    assert (done.verdict.error_type, done.decision.action) == ("nccl", "hold")
