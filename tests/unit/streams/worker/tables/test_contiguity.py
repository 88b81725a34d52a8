"""Of a batch only the next contiguous offsets are applied, however the batch was put together."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from midwatch.streams.worker.tables.contiguity import accept

offsets = st.integers(min_value=0, max_value=60)


def test_the_next_offsets_are_taken_and_older_ones_skipped() -> None:
    verdict = accept(5, [3, 4, 5, 6, 7])
    assert (verdict.taken, verdict.replayed, verdict.hole) == ((2, 3, 4), 2, None)


def test_an_offset_that_comes_twice_is_applied_once() -> None:
    """After two seeks within a generation a batch holds 5, 6, 5, 6, 7."""
    verdict = accept(5, [5, 6, 5, 6, 7])
    assert (verdict.taken, verdict.replayed, verdict.hole) == ((0, 1, 4), 2, None)


def test_nothing_behind_a_hole_is_taken() -> None:
    verdict = accept(5, [5, 7, 8])
    assert (verdict.taken, verdict.hole) == ((0,), 1)


def test_retention_explains_a_hole_up_to_the_start_of_the_log() -> None:
    assert accept(5, [9, 10], log_start=9).taken == (0, 1)
    assert accept(5, [9, 10], log_start=12).taken == (0, 1)
    assert accept(5, [9, 10], log_start=8).hole == 0


def test_the_start_of_the_log_explains_no_later_hole() -> None:
    assert accept(5, [9, 12], log_start=9).hole == 1


@given(expected=offsets, batch=st.lists(offsets, max_size=40))
def test_what_is_taken_is_one_unbroken_run(expected: int, batch: list[int]) -> None:
    verdict = accept(expected, batch)
    assert [batch[i] for i in verdict.taken] == list(range(expected, expected + len(verdict.taken)))
    assert list(verdict.taken) == sorted(set(verdict.taken))


@given(expected=offsets, batch=st.lists(offsets, max_size=40), log_start=offsets)
def test_every_record_is_taken_skipped_or_behind_a_hole(
    expected: int, batch: list[int], log_start: int
) -> None:
    verdict = accept(expected, batch, log_start)
    seen = len(batch) if verdict.hole is None else verdict.hole
    assert len(verdict.taken) + verdict.replayed == seen


@given(
    runs=st.lists(st.tuples(st.integers(0, 30), st.integers(1, 12)), max_size=8),
    cuts=st.lists(st.integers(0, 100), max_size=6),
)
def test_a_log_read_with_any_seeks_back_counts_each_record_once(
    runs: list[tuple[int, int]], cuts: list[int]
) -> None:
    """A reader that may go back, but never skips forward, in batches cut anywhere."""
    read: list[int] = []
    reached = 0
    for back, length in runs:
        start = max(0, reached - back)
        read += range(start, start + length)
        reached = max(reached, start + length)
    applied: list[int] = []
    bounds = [0, *sorted(min(cut, len(read)) for cut in cuts), len(read)]
    for first, last in pairwise(bounds):
        batch = read[first:last]
        verdict = accept(len(applied), batch)
        assert verdict.hole is None
        applied += [batch[i] for i in verdict.taken]
    assert applied == list(range(reached))
