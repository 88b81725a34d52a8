"""Ranks that waited in one collective, and ranks that went apart."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch


def _waited(rank: int, kind: str, group: str = "") -> str:
    return (
        f"[rank{rank}]:[E302 11:52:40.118 ProcessGroupNCCL.cpp:632] [{group}Rank {rank}] Watchdog caught"
        f" collective operation timeout: WorkNCCL(SeqNum=48, OpType={kind}, NumelIn=8, NumelOut=8,"
        " Timeout(ms)=30000) ran for 30041 milliseconds before timing out."
    )


@pytest.mark.parametrize(
    ("lines", "action"),
    [
        ([_waited(0, "ALLREDUCE"), _waited(1, "ALLREDUCE")], "restart"),
        ([_waited(0, "ALLREDUCE"), _waited(1, "BROADCAST")], "hold"),
        ([_waited(0, "ALLREDUCE", "PG ID 0 "), _waited(1, "BROADCAST", "PG ID 1 ")], "restart"),
        ([_waited(0, "ALLREDUCE", "PG ID 1 "), _waited(1, "BROADCAST", "PG ID 1 ")], "hold"),
        ([_waited(0, "ALLREDUCE"), _waited(0, "BROADCAST")], "restart"),  # one rank, two of its collectives
    ],
)
def test_ranks_that_waited_in_different_collectives_are_not_restarted_unasked(
    watch: Watch, lines: list[str], action: str
) -> None:
    done = watch("\n".join(["step: 10  loss:  8.1031", *lines]) + "\n")
    assert done.decision.action == action
    if action == "hold":
        assert "ranks waited in different collectives (ALLREDUCE, BROADCAST)" in done.decision.reason
