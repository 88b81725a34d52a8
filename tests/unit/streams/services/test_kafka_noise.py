"""The Kafka libraries may not flood a log, and may not cry wolf in it."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from midwatch.streams.services.kafka_noise import PER_WINDOW, WINDOW_S, KafkaNoise


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


Say = Callable[..., str | None]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def say(clock: Clock) -> Say:
    """Log one record; what came through, or None."""
    noise = KafkaNoise(clock)

    def log(text: str, *args: object, name: str = "aiokafka.conn", level: int = logging.ERROR) -> str | None:
        record = logging.LogRecord(name, level, "file", 1, text, args, None)
        return record.getMessage() if noise.filter(record) else None

    return log


def test_of_a_repeated_line_a_few_pass_and_the_rest_is_counted(say: Say, clock: Clock) -> None:
    passed = [say("Unable to connect to %s", node) for node in range(100)]
    assert sum(line is not None for line in passed) == PER_WINDOW
    clock.now += WINDOW_S
    assert (
        say("Unable to connect to %s", 7) == f"Unable to connect to 7 (and {100 - PER_WINDOW} more like it)"
    )


def test_lines_of_other_kinds_are_not_held_back_by_a_flood(say: Say) -> None:
    for _ in range(100):
        say("Unable to connect")
    assert say("Committing failed") is not None
    assert say("Unable to connect", name="aiokafka.client") is not None


def test_known_false_alarms_never_pass(say: Say) -> None:
    assert say("Sending username and password in the clear") is None
    assert say("Has not committed %r", "events/0", name="faust.transport.consumer") is None


def test_our_own_lines_and_the_libraries_last_words_always_pass(say: Say) -> None:
    for _ in range(100):
        assert say("the same", name="midwatch.streams.worker.stateful") == "the same"
        assert say("the same", level=logging.CRITICAL) == "the same"
