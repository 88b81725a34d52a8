"""Behind a collective that broke, a card is asked for the size that a buffer happened to hold."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

WATCHDOG = (
    "[rank2]:[E302 11:52:40.118290733 ProcessGroupNCCL.cpp:632] [Rank 2] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum=418, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=30000) ran "
    "for 30041 milliseconds before timing out.\n"
)
FULL = (
    "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {} GiB. GPU 0 has a total "
    "capacity of 79.10 GiB of which 77.01 GiB is free.\n"
)


@pytest.mark.parametrize(
    ("text", "family"),
    [
        (WATCHDOG + FULL.format("81000.25"), "nccl_timeout"),
        (WATCHDOG + FULL.format("90.50"), "oom"),
        (FULL.format("81000.25") + WATCHDOG, "oom"),
        (FULL.format("81000.25"), "oom"),
    ],
)
def test_only_a_size_beyond_any_card_behind_the_report_is_its_echo(
    watch: Watch, text: str, family: str
) -> None:
    assert watch(text).verdict.error_type == family
