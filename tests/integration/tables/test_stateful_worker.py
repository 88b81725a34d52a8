"""A stateful worker as a process: what it does with records that it cannot fold, with time, and with loss."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from integration.tables.workplace import Workplace
from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.streams.records.codec import decode
from midwatch.streams.worker.tables import keys
from processes import wait_for

pytestmark = pytest.mark.integration


@pytest.fixture
def place(stack: Endpoints, tmp_path: Path) -> Iterator[Workplace]:
    made = Workplace(stack, tmp_path, "stateful")
    yield made
    made.close()


def test_a_record_that_raises_is_set_aside_its_job_held_and_the_next_one_counted(place: Workplace) -> None:
    worker = place.worker().await_ready()
    place.send(place.names.events, b"job", b"boom", 0)
    place.send(place.names.events, b"job", b"count", 0)
    wait_for(lambda: place.values(place.names.incidents) == [b"1"], "the record behind it is counted")
    (letter,) = [decode(value) for value in place.values(place.names.dead)]
    assert (letter.topic, letter.partition, letter.offset) == (place.names.events, 0, 0)
    assert (letter.reason, letter.value, letter.key) == ("RuntimeError: boom", b"boom", b"job")
    assert place.state(0, b"job") == {b"held": b"1", b"count": b"1"}
    assert worker.stop() == 0
    assert place.committed(place.names.events)[0] == 2


def test_a_newer_record_stops_its_partition_and_no_other(place: Workplace) -> None:
    worker = place.worker().await_ready()
    for value in (b"count", b"newer", b"count"):
        place.send(place.names.events, b"new job", value, 0)
    place.send(place.names.events, b"old job", b"count", 1)
    wait_for(lambda: len(place.values(place.names.incidents)) == 2, "the other partition goes on")
    wait_for(lambda: "is stopped until this worker is upgraded" in worker.log(), "the worker says so")
    place.send(place.names.events, b"old job", b"count", 1)
    wait_for(lambda: place.state(1, b"old job") == {b"count": b"2"}, "and on")
    assert place.state(0, b"new job") == {b"count": b"1"}
    assert worker.stop() == 0
    assert place.committed(place.names.events) == {0: 1, 1: 2}


def test_a_timer_fires_by_a_tick_when_nobody_else_writes(place: Workplace) -> None:
    worker = place.worker().await_ready()
    place.send(place.names.events, b"job", b"in 1500", 2)
    wait_for(lambda: len(place.values(place.names.incidents)) == 2, "the timer fires")
    told, fired = place.read(place.names.incidents)
    set_at = next(record.timestamp for record in place.read(place.names.events) if record.key == b"job")
    due = set_at + 1500
    words = fired.value.split()
    assert told.value == b"1"
    assert words[1] == b"%d," % due
    assert int(words[3]) >= due
    ticks = [record for record in place.read(place.names.events) if record.value == b"tick"]
    assert {(tick.key, tick.partition) for tick in ticks} == {(None, 2)}
    assert all(later.timestamp - one.timestamp >= 900 for one, later in pairwise(ticks))
    assert worker.stop() == 0


def test_after_a_loss_of_redis_state_is_rebuilt_and_nothing_is_said_twice(place: Workplace) -> None:
    first = place.worker().await_ready()
    for _ in range(20):
        place.send(place.names.events, b"job", b"count", 0)
    wait_for(lambda: len(place.values(place.names.incidents)) == 20, "all are counted")
    assert first.stop() == 0
    assert place.committed(place.names.events)[0] == 20
    place.lose_redis()
    second = place.worker().await_ready()
    place.send(place.names.events, b"job", b"count", 0)
    wait_for(lambda: place.state(0, b"job") == {b"count": b"21"}, "state is rebuilt from the log")
    wait_for(lambda: len(place.values(place.names.incidents)) >= 21, "the new record is told")
    assert second.stop() == 0
    assert place.values(place.names.incidents) == [b"%d" % n for n in range(1, 22)]


def test_what_redis_still_held_is_published_first_and_once(place: Workplace) -> None:
    """Killed between the write and the send: the next worker finds the outbox."""
    first = place.worker().await_ready()
    place.send(place.names.events, b"job", b"count", 0)
    wait_for(lambda: place.values(place.names.incidents) == [b"1"], "it works")
    first.kill()
    for _ in range(50):
        place.send(place.names.events, b"job", b"count", 0)
    second = place.worker()
    wait_for(lambda: place.state(0, b"job").get(b"count", b"") > b"1", "the next worker writes")
    second.kill()
    third = place.worker().await_ready()
    place.send(place.names.events, b"job", b"count", 0)
    wait_for(lambda: b"52" in place.values(place.names.incidents), "the last worker has told all")
    assert third.stop() == 0
    firsts = list(dict.fromkeys(place.values(place.names.incidents)))
    assert firsts == [b"%d" % n for n in range(1, 53)]


def test_state_newer_than_the_log_ends_the_worker_loudly(place: Workplace) -> None:
    place.redis.set(keys.offset_key(place.group, place.names.events, 0), b"1000 somebody-1")
    worker = place.worker()
    assert worker.exit_code() == 1
    assert "are folded, but the log ends at 0" in worker.log()


def test_a_missing_topic_ends_the_worker_before_it_starts_and_says_what_to_do(
    stack: Endpoints, tmp_path: Path
) -> None:
    place = Workplace(stack, tmp_path, "stateful", topics=False)
    try:
        worker = place.worker()
        assert worker.exit_code() == 4
        assert f"{place.names.events}" in worker.log()
        assert "midwatch up" in worker.log()
    finally:
        place.close()
