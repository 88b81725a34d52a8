"""When a delivery is tried again."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from midwatch.agents.messages.retry import LONGEST_PAUSE_S, Patience, Refused, next_step, retry_after_s

PATIENCE = Patience(120.0, 86_400.0)


def _pause(tries: int, refused: Refused) -> float:
    return next_step(refused, tries, 0.0, 0.0, PATIENCE).pause_s


def test_pauses_grow_to_five_minutes() -> None:
    pauses = [_pause(n, Refused("no")) for n in (1, 2, 3, 9, 10, 500)]
    assert pauses == [1.0, 2.0, 4.0, 256.0, LONGEST_PAUSE_S, LONGEST_PAUSE_S]


def test_a_channel_that_asks_for_patience_gets_it_within_an_hour() -> None:
    assert _pause(1, Refused("slow down", pause_s=30.0)) == 30.0
    assert _pause(9, Refused("slow down", pause_s=30.0)) == 256.0
    assert _pause(1, Refused("slow down", pause_s=1e9)) == 3600.0


@pytest.mark.parametrize(
    ("refused", "failing_s", "elsewhere"),
    [
        (Refused("no"), 0.0, False),
        (Refused("no"), 119.0, False),
        (Refused("no"), 120.0, True),
        (Refused("gone", lasting=True), 0.0, True),
        (Refused("slow down", pause_s=5.0), 0.0, False),
        (Refused("slow down", pause_s=600.0), 0.0, True),
    ],
)
def test_another_channel_is_told_when_waiting_does_not_help(
    refused: Refused, failing_s: float, elsewhere: bool
) -> None:
    assert next_step(refused, 1, failing_s, failing_s, PATIENCE).elsewhere == elsewhere


def test_after_a_day_it_is_given_up() -> None:
    assert not next_step(Refused("no"), 9, 86_399.0, 86_399.0, PATIENCE).give_up
    assert next_step(Refused("no"), 9, 86_400.0, 86_400.0, PATIENCE).give_up


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("30", 30.0),
        (" 0.5 ", 0.5),
        ("Sun, 22 Nov 2026 18:00:30 GMT", 30.0),
        ("Sun, 22 Nov 2026 17:00:00 GMT", 0.0),
        (None, None),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("1.2.3", None),
        ("²", None),
    ],
)
def test_retry_after_is_read_as_a_number_or_a_date(header: str | None, seconds: float | None) -> None:
    assert retry_after_s(header, datetime(2026, 11, 22, 18, 0, tzinfo=UTC)) == seconds
