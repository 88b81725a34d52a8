"""torchrun lists the workers that failed, and behind them the one whose failure it observed first."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch


def entry(rank: int, end: str) -> str:
    code, told = end.split("/", 1)
    return (
        f"[{rank}]:\n  time      : 2026-03-02_11:52:4{rank % 10}\n  host      : n4\n"
        f"  rank      : {rank} (local_rank: {rank})\n  exitcode  : {code} (pid: {4180 + rank})\n"
        f"  error_file: <N/A>\n  traceback : {told.format(pid=4180 + rank)}\n"
    )


def report(first: int, **ends: str) -> str:
    ranks = {int(name[1:]): end for name, end in ends.items()}
    rule = "-" * 60 + "\n"
    others = "".join(entry(rank, end) for rank, end in ranks.items() if rank != first)
    return (
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
        + f"{'=' * 60}\ntrain.py FAILED\n{rule}Failures:\n{others}{rule}"
        + f"Root Cause (first observed failure):\n{entry(first, ranks[first])}{'=' * 60}\n"
    )


BUS = "-7/Signal 7 (SIGBUS) received by PID {pid}"
CRASH = "-11/Signal 11 (SIGSEGV) received by PID {pid}"
ERROR = "1/To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"


@pytest.mark.parametrize("end", [BUS, CRASH])
@pytest.mark.parametrize("first", [0, 3])
def test_of_workers_that_ended_alike_the_first_is_the_root(watch: Watch, end: str, first: int) -> None:
    done = watch(report(first, r0=end, r1=end, r2=end, r3=end))
    assert f"418{first}" in done.verdict.root_line


def test_however_many_they_are(watch: Watch) -> None:
    done = watch(report(7, **{f"r{rank}": CRASH for rank in range(90)}))
    assert "4187)" in done.verdict.root_line


def test_a_worker_that_ended_in_another_way_keeps_its_place(watch: Watch) -> None:
    done = watch(report(0, r0=ERROR, r1=CRASH, r2=ERROR))
    assert done.verdict.error_type == "native_crash"
    assert "4181" in done.verdict.root_line
