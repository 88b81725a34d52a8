"""A command of srun was cancelled while it waited for nodes. Another one of the same file has them."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

WAITS = "srun: job {job} queued and waiting for resources\n"
GIVEN = "srun: job {job} has been allocated resources\n"
CANCELLED = (
    "srun: Job has been cancelled\n"
    "srun: Force Terminated job 71\n"
    "srun: error: Unable to allocate resources: Job/step already completing or completed\n"
)
SCORES = "(700, 4)\n0.77\n" * 4


def test_a_start_that_never_got_its_nodes_ends_nothing_of_the_one_that_has_them(watch: Watch) -> None:
    text = WAITS.format(job=71) + WAITS.format(job=88) + GIVEN.format(job=88) + CANCELLED + SCORES
    assert watch(text).verdict.state != "failed"


@pytest.mark.parametrize(
    "text",
    [
        WAITS.format(job=71) + CANCELLED,
        WAITS.format(job=71) + CANCELLED + SCORES,
        WAITS.format(job=88) + GIVEN.format(job=88) + SCORES + WAITS.format(job=71) + CANCELLED,
    ],
    ids=["alone", "no other has nodes", "nothing behind"],
)
def test_a_wait_that_was_cancelled_is_the_end_otherwise(watch: Watch, text: str) -> None:
    assert watch(text).verdict.error_type == "cancelled"
