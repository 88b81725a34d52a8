"""A stateless worker as a process: nothing is lost, and a clean stop repeats nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from integration.tables.workplace import Workplace
from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.streams.records.codec import decode
from midwatch.streams.settings.schema import WorkerSettings
from processes import wait_for

pytestmark = pytest.mark.integration


@pytest.fixture
def place(stack: Endpoints, tmp_path: Path) -> Iterator[Workplace]:
    made = Workplace(stack, tmp_path, "stateless")
    yield made
    made.close()


def send_many(place: Workplace, first: int, count: int) -> list[bytes]:
    values = [b"line %d" % n for n in range(first, first + count)]
    for value in values:
        place.producer.send(place.names.logs, value, key=b"job", partition=0)
    place.producer.flush()
    return values


def test_a_worker_that_stops_in_good_order_repeats_nothing(stack: Endpoints, tmp_path: Path) -> None:
    # As midwatch has it: who cannot commit within half of it leaves its last lines to the next owner.
    session_timeout = WorkerSettings().session_timeout
    with closing(Workplace(stack, tmp_path, "stateless", session_timeout=session_timeout)) as place:
        _stop_and_follow(place)


def _stop_and_follow(place: Workplace) -> None:
    first = place.worker().await_ready()
    sent = send_many(place, 0, 300)
    wait_for(lambda: bool(place.values(place.names.events)), "it works")
    assert first.stop() == 0
    place.worker().await_ready()
    sent += send_many(place, 300, 10)
    wait_for(lambda: set(place.values(place.names.events)) >= set(sent), "all are said again")
    assert place.values(place.names.events) == sent


@pytest.mark.capability("X-41")
def test_a_killed_worker_loses_nothing_and_keeps_the_order(place: Workplace) -> None:
    first = place.worker().await_ready()
    sent = send_many(place, 0, 1000)
    wait_for(lambda: bool(place.values(place.names.events)), "it works")
    first.kill()
    second = place.worker().await_ready()
    # The first may have said all of them before it was killed: what is committed shows how far the second is.
    wait_for(lambda: place.committed(place.names.logs) == {0: 1000}, "all are dealt with")
    assert set(place.values(place.names.events)) == set(sent)
    assert list(dict.fromkeys(place.values(place.names.events))) == sent
    assert second.stop() == 0
    assert place.committed(place.names.logs) == {0: 1000}


def test_what_it_cannot_handle_is_set_aside_and_the_rest_goes_on(place: Workplace) -> None:
    worker = place.worker().await_ready()
    for value in (b"boom", b"large", b"line"):
        place.send(place.names.logs, b"job", value, 0)
    wait_for(lambda: place.values(place.names.events) == [b"line"], "the record behind them is said")
    letters = [decode(value) for value in place.values(place.names.dead)]
    assert [letter.reason.partition(":")[0] for letter in letters] == ["RuntimeError", "RecordTooLarge"]
    assert worker.stop() == 0
    assert place.committed(place.names.logs) == {0: 3}
