"""A process that somebody interrupted, or whose port was taken, is why the others wait or cannot connect."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch
from unit.agents.detect.diagnosis.test_cascades import frames

STEPS = "".join(f"step: {step}  loss: 2.10  grad_norm: 1.02\n" for step in range(1, 9))
INTERRUPTED = frames("KeyboardInterrupt")
WAITED = (
    "[rank1]:[E302 11:52:40.1 ProcessGroupNCCL.cpp:632] [Rank 1] Watchdog caught collective operation"
    " timeout: WorkNCCL(SeqNum=48, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600041 milliseconds before"
    " timing out.\n[rank1]:[E302 11:52:40.2 ProcessGroupNCCL.cpp:637] To avoid data inconsistency, we are"
    " taking the entire process down.\nFatal Python error: Aborted\n"
)
PORT = "[E socket.cpp:500] [c10d] The server socket has failed to listen on any local network address."
NO_LINK = (
    frames("torch.distributed.DistBackendError: NCCL error in: /src/toy.cpp:7, unhandled system error")
    + "\nLast error:\nsocketStartConnect: Connect to 10.0.0.7<41> failed : Software caused connection abort\n"
)


def test_an_interrupt_is_why_the_others_wait_in_vain_behind_it(watch: Watch) -> None:
    done = watch(f"{STEPS}{INTERRUPTED}\n{WAITED}")
    assert (done.verdict.error_type, done.verdict.root_line) == ("user_interrupt", "KeyboardInterrupt")
    assert done.decision.action == "hold"


def test_an_interrupt_behind_the_wait_is_somebody_who_saw_it(watch: Watch) -> None:
    done = watch(f"{STEPS}{WAITED}{INTERRUPTED}\n")
    assert done.verdict.error_type == "nccl_timeout"


def test_an_interrupt_beside_another_failure_explains_no_more_than_before(watch: Watch) -> None:
    memory = frames("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")
    assert watch(f"{STEPS}{memory}\n{INTERRUPTED}\n{WAITED}").verdict.error_type == "oom"


@pytest.mark.parametrize("taken", [PORT, frames(f"RuntimeError: {PORT.partition('[c10d] ')[2]}")])
def test_a_port_that_was_taken_is_why_the_peers_cannot_connect(watch: Watch, taken: str) -> None:
    done = watch(f"the toy starts\n{taken}\nthe toy runs on one card\n{NO_LINK}")
    assert done.verdict.error_type == "port_in_use"
    assert watch(f"the toy starts\n{NO_LINK}").verdict.error_type == "communication"


def summary(*codes: int) -> str:
    """What torchrun prints of its workers when they have ended; the last one is the first that failed."""
    heads = ["Failures:", *[""] * len(codes)]
    heads[len(codes) - 1] = "Root Cause (first observed failure):"
    told = "".join(
        f"{head}\n[{7 - rank}]:\n  time      : 2026-03-02_11:52:45\n  host      : n4\n"
        f"  rank      : {rank} (local_rank: {rank})\n  exitcode  : {code} (pid: {4180 + rank})\n"
        "  error_file: <N/A>\n  traceback : "
        + (f"Signal {-code} (SIGTERM) received by PID {4180 + rank}\n" if code == -15 else "see the docs\n")
        for rank, (head, code) in enumerate(zip(heads, codes, strict=False))
    )
    raised = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
    return f"{raised}{'=' * 60}\ntoy.py FAILED\n{'-' * 60}\n{told}{'=' * 60}\n"


def test_workers_that_the_agent_ends_behind_a_failure_were_cancelled_by_nobody(watch: Watch) -> None:
    done = watch(summary(-15, -15, 1))
    assert (done.verdict.error_type, done.verdict.root_line) == ("exception", "  exitcode  : 1 (pid: 4182)")
    assert watch(summary(-15, -15, -9)).verdict.error_type == "host_oom"
    assert watch(summary(-15, -15, -15)).verdict.error_type == "cancelled"


KILLS = "[2026-03-02 11:52:40,118] [INFO] [launch.py:286:sigkill_handler] Killing subprocess 418{}\n"
LAUNCHER = frames("NameError: free variable 'toy' referenced before assignment in enclosing scope")
GONE = (
    "[2026-03-02 11:52:44,118] [INFO] [launch.py:295:sigkill_handler] Main process received SIGTERM, exiting"
)


def test_a_launcher_that_a_person_interrupts_ends_its_ranks(watch: Watch) -> None:
    done = watch(f"{STEPS}{KILLS.format(1)}{INTERRUPTED}\n{LAUNCHER}\n{KILLS.format(2)}{GONE}")
    assert (done.verdict.error_type, done.verdict.root_line) == ("user_interrupt", "KeyboardInterrupt")
    assert done.decision.action == "hold"


def test_a_launcher_that_somebody_ends_was_cancelled(watch: Watch) -> None:
    assert watch(f"{STEPS}{KILLS.format(1)}{GONE}").verdict.error_type == "cancelled"
    memory = frames("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")
    assert watch(f"{STEPS}{KILLS.format(1)}{memory}\n{GONE}").verdict.error_type == "oom"


def test_a_scheduler_that_interrupts_a_job_says_more(watch: Watch) -> None:
    done = watch(f"{STEPS}{INTERRUPTED}\nTERM_OWNER: job killed by owner.\nExited with exit code 130.\n")
    assert done.verdict.root_line == "TERM_OWNER: job killed by owner."
