"""NCCL's own warning is the root in place of what its calls hand up, and shows no more than they do."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch
from unit.agents.detect.diagnosis.test_scheduler_word import STEPS

WARNING = "n4:77:78 [2] misc/toywrap.cc:187 NCCL WARN toyDeviceGetHandle() failed: Not Found\n"
HANDED_UP = "n4:77:78 [2] NCCL INFO graph/xml.cc:850 -> 2\nn4:77:78 [2] NCCL INFO init.cc:1012 -> 2\n"
PROXY = (
    "n4:77:78 [1] proxy.cc:1119 NCCL WARN [Proxy Service 9] Failed to execute operation Connect from rank 9, "
    "retcode 6\n"
)


@pytest.mark.parametrize("echo", [HANDED_UP, PROXY])
def test_the_warning_before_its_echoes_is_the_root(watch: Watch, echo: str) -> None:
    done = watch(WARNING + echo)
    assert (done.verdict.root_line, done.verdict.error_type) == (WARNING.strip(), "nccl")
    assert done.decision.action == "hold"


def test_what_calls_hand_up_without_a_warning_is_the_root_itself(watch: Watch) -> None:
    assert watch(HANDED_UP).verdict.root_line == HANDED_UP.splitlines()[1]
    assert watch(STEPS + WARNING).verdict.state == "healthy"


FELL = "n4:77:78 [2] transport/net_ib.cc:93 NCCL WARN NET/IB : Got async event : port error\n"
GAVE_UP = (
    "n5:88:90 [1] transport/net_ib.cc:1296 NCCL WARN NET/IB : Got completion from peer 10.8.0.4<41200> with "
    "error 12, opcode 0, len 0, vendor err 129\n"
)
WAITED = "[rank3]:[E302 11:52:40.1 toy.cpp:3] [Rank 3] Watchdog caught collective operation timeout: Work\n"


@pytest.mark.parametrize("end", [GAVE_UP, WAITED])
def test_a_port_that_fell_before_the_link_or_the_stall_is_the_root(watch: Watch, end: str) -> None:
    done = watch(STEPS + FELL + end)
    assert (done.verdict.root_line, done.verdict.error_type) == (FELL.strip(), "nccl")
    assert done.decision.action == "restart"
    assert watch(STEPS + end + FELL).verdict.root_line == end.strip()
    assert watch(STEPS + FELL).verdict.state == "healthy"
