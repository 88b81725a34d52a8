"""An error that names its item is not the end, where earlier items met theirs and the program went on."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

WORK = "the toys of shelf {at} are painted, and dry\n"


def log(error: str, count: int = 9, work: str = WORK) -> str:
    return "".join(
        error.format(at=3 * at + at % 2) + work.format(at=at) for at in range(count)
    ) + error.format(at=99)


@pytest.mark.parametrize(
    "error",
    [
        "Error painting toy {at}: no paint\n",
        "2026-03-02 11:52:40,118 - ERROR - shelf T{at}: the toy is gone\n",
    ],
)
def test_one_more_item_s_error_ends_nothing(watch: Watch, error: str) -> None:
    assert watch(log(error)).verdict.state != "failed"
    assert watch(log(error, count=2)).verdict.state == "failed"
    assert watch(log(error, work="")).verdict.state == "failed"


@pytest.mark.parametrize(
    "error",
    [
        "Error painting toy on rank {at}: no paint\n",
        "Error painting, attempt {at}: no paint\n",
        "Error painting at step {at}: no paint\n",
        "Error painting toys: no paint\n",
    ],
)
def test_an_error_of_a_rank_a_try_or_a_step_may_be_the_last(watch: Watch, error: str) -> None:
    assert watch(log(error)).verdict.state == "failed"


def test_an_error_that_names_something_else_is_an_end(watch: Watch) -> None:
    painted = log("Error painting toy {at}: no paint\n")
    assert watch(f"{painted}Error opening shelf 4: it is locked\n").verdict.state == "failed"
