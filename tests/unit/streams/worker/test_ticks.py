"""A tick is written when a deadline has passed, by the broker's time and our own clock since."""

from __future__ import annotations

from midwatch.streams.worker.ticks import is_due


def test_a_deadline_passes_with_the_time_since_the_last_record() -> None:
    assert not is_due(deadline_ms=10_000, now_ms=8_000, since_s=1.9)
    assert is_due(deadline_ms=10_000, now_ms=8_000, since_s=2.0)


def test_a_deadline_that_the_log_has_passed_is_due_at_once() -> None:
    assert is_due(deadline_ms=10_000, now_ms=10_000, since_s=0.0)
