"""What NCCL raises where a peer is gone: behind a step it may pass, before any step nothing shows that."""

from __future__ import annotations

import pytest

from midwatch.agents.detect.diagnosis.noted_lines import exit_of_the_peer
from unit.agents.conftest import Watch
from unit.agents.detect.diagnosis.test_not_root import seen

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


LINK = (
    "[rank{rank}]: RuntimeError: [../gloo/transport/tcp/pair.cc:77] Read error [192.0.2.7]:4188: "
    "Connection reset by peer. Check the logs of the remote rank."
)
ENDED = "E0302 11:52:45.31 4 toy/elastic/api.py:7] failed (exitcode: {code}) local_rank: {rank} (pid: 9)"


def ended(code: int, rank: int) -> str:
    return ENDED.format(code=code, rank=rank) + " of binary: /toy/python"


@pytest.mark.parametrize(("code", "kind"), [(3, "exception"), (-6, "native_crash"), (-11, "native_crash")])
def test_the_peer_that_ended_by_itself_is_the_cause_of_the_lost_link(
    watch: Watch, code: int, kind: str
) -> None:
    """The launcher looks after its processes ten times a second, so the others may report the link first."""
    done = watch(f"{STEPS}{LINK.format(rank=0)}\n{ended(code, 1)}\n")
    assert (done.verdict.error_type, done.verdict.root_line) == (kind, ended(code, 1))
    assert (done.verdict.transient, done.decision.action) == (None, "hold")


@pytest.mark.parametrize(
    "end",
    [
        ended(1, 1),  # an exception, which may be that of the link, with its text elsewhere
        ended(3, 0),  # the process that reported the lost link
    ],
)
def test_an_end_that_a_lost_link_may_explain_is_no_cause(watch: Watch, end: str) -> None:
    done = watch(f"{STEPS}{LINK.format(rank=0)}\n{end}\n")
    assert (done.verdict.error_type, done.decision.action) == ("communication", "restart")


def test_a_rule_of_a_user_may_capture_any_words_as_a_rank() -> None:
    hit = seen(7, role="consequence", kind="exception", captures={"local_rank": "first", "exit_code": "3"})
    lost = seen(3, kind="communication", transient=True)
    assert exit_of_the_peer(lost, [lost, hit]) is lost


def test_a_process_of_a_later_node_counts_from_zero(watch: Watch) -> None:
    done = watch(f"{STEPS}{LINK.format(rank=11)}\n{ended(3, 3)}\n")
    assert done.verdict.error_type == "communication"
    assert watch(f"{STEPS}{LINK.format(rank=11)}\n{ended(3, 5)}\n").verdict.error_type == "exception"
