"""A wrapper that calls all of its program's standard error an error tells of none at the end of a log."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

ERROR = "2026-03-02 11:52:40,118 - ERROR - "
STEPS = "Epoch 3 step 40/900 loss 2.31\nEpoch 3 step 50/900 loss 2.30\n"


@pytest.mark.parametrize(
    "line",
    [
        " 61%|######    | 1092/1790 [04:08<02:38,  4.40it/s]",
        "  warnings.warn(",
        "/env/toy.py:7: UserWarning: the toy is old",
        "2026-03-02 11:52:40 WARNING the toy is old",
        "INFO:toy:a wheel turns",
        "[rank3]:W0302 11:52:40.132000 41 toy.py:12] a wheel squeaks",
    ],
)
def test_lines_of_the_same_level_that_are_no_errors_show_that_the_level_says_nothing(
    watch: Watch, line: str
) -> None:
    toys = f"{ERROR}the toys are painted\n"
    assert watch(f"{STEPS}{ERROR}{line}\n{toys}").verdict.state != "failed"
    assert watch(f"{STEPS}{toys}").verdict.state == "failed"
    raised = f"{ERROR}{line}\n{ERROR}ValueError: no such toy\n"
    assert watch(f"{STEPS}{raised}").verdict.root_line == f"{ERROR}ValueError: no such toy"
