"""When a worker says that it does not see what it should."""

from __future__ import annotations

import pytest

from midwatch.streams.worker.counters import SLACK, Counters
from midwatch.streams.worker.exported import STALE_S, health

NOW = 1_000_000.0
PLACE = ("events", 0)


@pytest.mark.capability("X-14")
def test_a_worker_that_has_not_looked_yet_is_not_ready() -> None:
    assert health(Counters(), NOW).reasons == ("it has not read its partitions yet",)


def test_a_worker_that_keeps_up_is_ready() -> None:
    counters = Counters()
    counters.measured({PLACE: 3}, NOW)
    assert health(counters, NOW + 5).ready


def test_a_lag_that_shrinks_is_kept_up_with_and_one_that_stays_is_not() -> None:
    counters = Counters()
    for second in range(0, 100, 5):
        counters.measured({PLACE: 100 * SLACK - second}, NOW + second)
    assert health(counters, NOW + 96).ready
    for second in range(100, 140, 5):
        counters.measured({PLACE: 100 * SLACK}, NOW + second)
    assert "records behind" in health(counters, NOW + 136).reasons[0]


def test_without_an_answer_of_kafka_it_is_blind() -> None:
    counters = Counters()
    counters.measured({}, NOW)
    assert "no answer of Kafka" in health(counters, NOW + STALE_S + 1).reasons[0]


def test_a_stopped_partition_is_told_with_its_reason() -> None:
    counters = Counters(stopped={PLACE: "a newer record"})
    counters.measured({}, NOW)
    assert health(counters, NOW).reasons == ("events/0 is stopped: a newer record",)
