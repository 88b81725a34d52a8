"""Who left the others, where these only say that they were left; what a drill announces of itself."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

LEFT_BEHIND = "[1,1]<stderr>:RuntimeError: Horovod has been shut down. This was caused by an exception"
WAITED = (
    "[rank1]:[E302 11:52:40.1 ProcessGroupNCCL.cpp:632] [Rank 1] Watchdog caught collective operation"
    " timeout: WorkNCCL(SeqNum=48, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600041 milliseconds before"
    " timing out."
)


@pytest.mark.parametrize(
    ("left", "told"),
    [
        ("[1,0]<stderr>:Epoch 00007: early stopping triggered.", LEFT_BEHIND),
        ("[rank0]: Monitored metric val_loss did not improve. Signaling Trainer to stop.", WAITED),
        ("stopping training early: the score fell", WAITED),
    ],
)
def test_a_rank_that_stopped_early_is_why_the_others_wait_in_vain(watch: Watch, left: str, told: str) -> None:
    done = watch(f"{left}\n{told}\n")
    assert (done.verdict.error_type, done.verdict.root_line) == ("exception", left)
    assert done.decision.action == "stop"
    assert "decide together" in done.verdict.remedy


@pytest.mark.parametrize("swapped", [False, True])
def test_it_is_why_at_one_time_too_whatever_the_ranks_files_are_called(watch: Watch, swapped: bool) -> None:
    left, told = "[1,0]<stderr>:Epoch 00007: early stopping triggered.\n", f"{LEFT_BEHIND}\n"
    done = watch(*((told, left) if swapped else (left, told)))
    assert (done.verdict.root_line, done.decision.action) == (left.strip(), "stop")


def test_who_says_that_it_is_done_and_then_fails_itself_left_nobody(watch: Watch) -> None:
    own = LEFT_BEHIND.replace("[1,1]", "[1,0]")
    assert watch(f"[1,0]<stderr>:Epoch 00007: early stopping triggered.\n{own}\n").verdict.root_line == own


def test_an_error_of_a_ranks_own_beats_another_that_stopped_early(watch: Watch) -> None:
    error = "[rank1]: ValueError: the toy broke"
    log = f"[rank0]: stopping training early\n{error}\n{WAITED}\n"
    assert watch(log).verdict.root_line == error


def test_a_run_that_stops_early_and_ends_is_well(watch: Watch) -> None:
    steps = [f"step: {n}  loss:  2.1  grad_norm:  0.3" for n in range(1, 9)]
    assert watch("\n".join([*steps, "Epoch 00007: early stopping triggered."])).verdict.state == "healthy"


def test_a_drill_that_announces_a_fault_is_not_the_fault(watch: Watch) -> None:
    felt = "saving step 40: OSError: [Errno 28] No space left on device"
    log = f"storage injection: [Errno 28] No space left on device; 4096 B\n{felt}\n{WAITED}\n"
    verdict = watch(log).verdict
    assert (verdict.error_type, verdict.root_line) == ("storage", felt)


def test_a_failure_of_what_is_called_injection_is_one(watch: Watch) -> None:
    line = "ValueError: kernel injection: no policy for ToyBlock"
    assert watch(f"{line}\n").verdict.root_line == line
