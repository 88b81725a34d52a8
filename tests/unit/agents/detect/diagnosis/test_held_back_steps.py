"""Steps whose output was held back: they come out behind the exception that ended another rank."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch


def steps(first: int, last: int, front: str = "") -> str:
    return "".join(f"{front}step {n} loss {3 - n / 500:.3f}\n" for n in range(first, last + 1))


OOM = "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB."
UNCAUGHT = (
    "[rank1]: Traceback (most recent call last):\n"
    '[rank1]:   File "train.py", line 9, in <module>\n'
    f"[rank1]:     main()\n{OOM}\n"
)
CAUGHT = UNCAUGHT.replace("<module>", "train_step")
GONE = (
    "[rank0]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, "
    "remote process exited or there was a network error, NCCL version 2.21.5\n"
)
EXIT = (
    "E0302 11:52:45.3 9 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: 1) "
    "local_rank: 1 (pid: 88) of binary: python3\n"
)
CANCELLED = "slurmstepd: error: *** STEP 77.0 ON n4 CANCELLED AT 2026-03-02T11:52:40 ***\n"
LINK = (
    "h4:310:402 [1] transport/net_ib.cc:1296 NCCL WARN NET/IB : Got completion from peer 10.8.0.4<41200> "
    "with error 12, opcode 0, len 0, vendor err 129\n"
)


@pytest.mark.parametrize("end", [GONE, EXIT, CANCELLED, LINK])
@pytest.mark.parametrize("more", [4, 40])
def test_an_exception_that_ended_its_rank_is_the_root_though_steps_come_out_behind_it(
    watch: Watch, end: str, more: int
) -> None:
    done = watch(steps(1, 9) + UNCAUGHT + steps(10, 9 + more) + end)
    assert (done.verdict.error_type, done.verdict.root_line) == ("oom", OOM)
    assert done.decision.action == "stop"


def test_so_it_is_where_many_ranks_print_each_step(watch: Watch) -> None:
    def all_of(first: int, last: int) -> str:
        return "".join(
            steps(n, n, f"{rank:2d}: ") for n in range(first, last + 1) for rank in (0, *range(2, 40))
        )

    done = watch(all_of(1, 5) + UNCAUGHT + all_of(6, 12) + GONE)
    assert done.verdict.root_line == OOM


def test_what_the_program_caught_is_no_root_once_it_made_further_steps(watch: Watch) -> None:
    done = watch(steps(1, 9) + CAUGHT + steps(10, 19) + GONE)
    assert done.verdict.root_line == GONE.strip()


def test_a_buffer_holds_only_so_many_steps_back(watch: Watch) -> None:
    done = watch(steps(1, 9) + UNCAUGHT + steps(10, 130) + GONE)
    assert done.verdict.root_line == GONE.strip()


def test_a_rank_that_prints_on_itself_had_not_ended(watch: Watch) -> None:
    done = watch(steps(1, 9, "[rank1]: ") + UNCAUGHT + steps(10, 19, "[rank1]: ") + GONE)
    assert done.verdict.root_line == GONE.strip()


def test_without_any_end_the_steps_speak_against_a_failure(watch: Watch) -> None:
    assert watch(steps(1, 9) + UNCAUGHT + steps(10, 19)).verdict.state == "healthy"
