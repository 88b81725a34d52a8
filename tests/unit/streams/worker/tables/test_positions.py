"""Where a worker reads on, from what Redis, the group and the log say."""

from __future__ import annotations

import pytest

from midwatch.streams.worker.tables.positions import (
    AheadOfLog,
    Bounds,
    Position,
    reader_position,
    table_position,
)


def bounds(committed: int | None, start: int = 0, end: int = 100) -> Bounds:
    return Bounds(committed, start, end)


def test_redis_is_the_truth_not_the_commit() -> None:
    assert table_position(41, bounds(30), "t/0").next_offset == 42


def test_a_new_partition_is_read_from_its_start() -> None:
    assert table_position(-1, bounds(None, start=7), "t/0") == Position(7)


def test_what_retention_took_is_counted() -> None:
    assert table_position(41, bounds(42, start=50), "t/0") == Position(50, retention_gap=8, mute_below=42)


def test_a_lost_redis_replays_muted_up_to_the_commit() -> None:
    assert table_position(-1, bounds(30), "t/0") == Position(0, mute_below=30)


def test_a_redis_that_was_rolled_back_replays_muted_too() -> None:
    assert table_position(19, bounds(30), "t/0") == Position(20, mute_below=30)


@pytest.mark.parametrize(("stored", "committed"), [(100, 100), (-1, 101)])
def test_state_newer_than_the_log_is_refused(stored: int, committed: int) -> None:
    with pytest.raises(AheadOfLog, match="log ends at 100") as refusal:
        table_position(stored, bounds(committed), "events/3")
    assert refusal.value.where == "events/3"
    assert refusal.value.remedy


def test_a_reader_without_state_goes_on_at_its_commit() -> None:
    assert reader_position(bounds(42)) == Position(42)
    assert reader_position(bounds(None, start=7)) == Position(7)
    assert reader_position(bounds(42, start=50)) == Position(50, retention_gap=8)


def test_a_reader_reads_a_topic_that_was_made_anew_from_its_start() -> None:
    assert reader_position(bounds(42, start=0, end=5)) == Position(0)
