"""How often a shipper beats, and how its beats are numbered."""

from __future__ import annotations

import pytest

from midwatch.shippers.files.tail import Now
from midwatch.shippers.sending.heartbeat import HeartbeatCounter, HeartbeatFacts, interval
from unit.shippers.reading import ORIGIN

FACTS = HeartbeatFacts(at_end=True, backlog=0, files=1, alive=True, samples={})


@pytest.mark.parametrize(("nodes", "seconds"), [(1, 5.0), (2500, 5.0), (10_000, 20.0)])
def test_ten_thousand_nodes_send_five_hundred_beats_a_second(nodes: int, seconds: float) -> None:
    assert interval(5.0, nodes) == seconds


def test_the_first_beat_is_due_at_once_and_the_next_after_the_interval() -> None:
    pulse = HeartbeatCounter(ORIGIN, 5.0)
    assert pulse.due(Now(0.0, 100.0))
    pulse.heartbeat(Now(0.0, 100.0), FACTS)
    assert not pulse.due(Now(0.0, 104.9))
    assert pulse.due(Now(0.0, 105.0))


def test_beats_are_numbered_and_carry_both_clocks() -> None:
    pulse = HeartbeatCounter(ORIGIN, 5.0)
    first, second = (
        pulse.heartbeat(Now(7.0, 100.0), FACTS),
        pulse.heartbeat(Now(6.0, 105.0), FACTS, final=True),
    )
    assert (first.sequence, second.sequence) == (1, 2)
    assert (second.wall, second.monotonic, second.interval) == (6.0, 105.0, 5.0)
    assert (first.final, second.final) == (False, True)
