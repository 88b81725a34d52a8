"""A file has arrived as far as everything before it has."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from midwatch.shippers.files.tail import FilePosition
from midwatch.shippers.sending.ledger import SendLedger
from midwatch.streams.records import Generation

FILE = Generation(1, 1, "a")


@dataclass
class Promise:
    is_done: bool = False
    exception: BaseException | None = None


def sent(count: int) -> tuple[SendLedger, list[Promise]]:
    ledger, promises = SendLedger(), [Promise() for _ in range(count)]
    for i, promise in enumerate(promises):
        ledger.add(promise, 100, ((FILE, FilePosition(10 * (i + 1))),), float(i))
    return ledger, promises


def test_nothing_arrives_before_it_is_acknowledged() -> None:
    ledger, _ = sent(2)
    assert ledger.arrived() == {}
    assert (ledger.in_flight, len(ledger), ledger.oldest()) == (200, 2, 0.0)


def test_an_acknowledgement_out_of_order_waits_for_those_before() -> None:
    ledger, promises = sent(3)
    promises[1].is_done = promises[2].is_done = True
    assert ledger.arrived() == {}
    promises[0].is_done = True
    assert ledger.arrived() == {FILE: FilePosition(30)}
    assert ledger.in_flight == 0


def test_what_stands_behind_a_failure_never_arrives() -> None:
    ledger, promises = sent(3)
    for promise in promises:
        promise.is_done = True
    promises[1].exception = ConnectionError("gone")
    assert ledger.arrived() == {FILE: FilePosition(10)}
    with pytest.raises(ConnectionError):
        ledger.arrived()
    ledger.clear()
    assert (ledger.in_flight, ledger.oldest()) == (0, None)
