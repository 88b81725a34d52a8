"""Ray Tune lists a trial that a further try has saved. The run did well."""

from __future__ import annotations

import pytest

from midwatch.agents.match.recovered_trials import is_recovered
from unit.agents.conftest import Watch

TABLE = """{0}
+--------------+------------+-------+
| Trial name   | status     |  iter |
|--------------+------------+-------|
| toy_00ab1_00 | TERMINATED |     7 |
+--------------+------------+-------+
Number of errored trials: 1
+-------------------+--------------+----------------------------+
| Trial name        |   # failures | error file                 |
|-------------------+--------------+----------------------------|
| toy_00ab1_00000   |            1 | /toy/toy_00ab1/error.txt   |
+-------------------+--------------+----------------------------+
"""
WELL = ["Number of trials: 3/3 (3 TERMINATED)", "Trial status: 3 TERMINATED"]
ILL = [
    "Number of trials: 3/4 (3 TERMINATED)",
    "Number of trials: 3/3 (1 ERROR, 2 TERMINATED)",
    "Number of trials: 3/3 (1 RUNNING, 2 TERMINATED)",
    "Trial status: 2 TERMINATED | 1 ERROR",
    "the toys are counted",
]


@pytest.mark.parametrize("status", WELL)
def test_trials_that_all_ended_well_are_no_failure(watch: Watch, status: str) -> None:
    assert watch(TABLE.format(status)).verdict.state != "failed"


@pytest.mark.parametrize("status", ILL)
def test_another_status_leaves_the_errors_of_the_report(watch: Watch, status: str) -> None:
    assert watch(TABLE.format(status)).verdict.state == "failed"


def test_the_nearest_report_counts() -> None:
    text = (TABLE.format(WELL[0]) + TABLE.format(ILL[1])).encode()
    first, last = text.index(b"Number of errored"), text.rindex(b"Number of errored")
    assert is_recovered(text, first, text.index(b"\n", first))
    assert not is_recovered(text, last, text.index(b"\n", last))
