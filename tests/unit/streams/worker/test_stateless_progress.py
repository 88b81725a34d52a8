"""A stateless agent commits no further than what Kafka has acknowledged."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midwatch.streams.worker.stateless import PartitionProgress


@pytest.mark.capability("X-41")
def test_the_commit_waits_for_the_oldest_unanswered_send() -> None:
    progress = PartitionProgress(10)
    for offset, sends in ((10, 0), (11, 2), (12, 0), (13, 1)):
        progress.handled(offset, sends)
    assert progress.committable() == 11
    progress.acknowledged(13)
    progress.acknowledged(11)
    assert progress.committable() == 11
    progress.acknowledged(11)
    assert progress.committable() == 14


def test_only_the_first_record_after_an_assignment_is_fresh() -> None:
    progress = PartitionProgress(10)
    assert progress.fresh
    progress.handled(10, 0)
    assert not progress.fresh


@pytest.mark.capability("X-41")
@given(counts=st.lists(st.integers(0, 3), min_size=1, max_size=20), seed=st.randoms())
def test_no_order_of_answers_commits_an_unanswered_send(counts: list[int], seed: random.Random) -> None:
    progress = PartitionProgress(0)
    open_sends = {offset: count for offset, count in enumerate(counts) if count}
    for offset, count in enumerate(counts):
        progress.handled(offset, count)
    answers = [offset for offset, count in open_sends.items() for _ in range(count)]
    seed.shuffle(answers)
    for offset in answers:
        assert progress.committable() == min(open_sends)
        progress.acknowledged(offset)
        open_sends[offset] -= 1
        if not open_sends[offset]:
            del open_sends[offset]
    assert progress.committable() == len(counts)
