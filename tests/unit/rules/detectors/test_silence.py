"""Silence is counted from beats, and a quorum decides whether it proves anything."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midwatch.rules.detectors.silence import Pulse, quorum, silence_of_job, take_heartbeat


def _beat(pulse: Pulse, sequence: int, monotonic: float, *, at_end: bool = True, shipper: str = "s") -> Pulse:
    return take_heartbeat(
        pulse, shipper=shipper, sequence=sequence, monotonic=monotonic, interval=5, at_end=at_end, now_ms=0
    ).pulse


@pytest.mark.capability("N-6")
def test_a_gap_counts_two_intervals_at_most() -> None:
    pulse = _beat(_beat(Pulse(), 0, 0), 1, 1000)
    assert pulse.silence == 10


def test_a_new_start_of_the_shipper_counts_nothing() -> None:
    pulse = _beat(_beat(_beat(Pulse(), 0, 0), 1, 5), 0, 90, shipper="t")
    assert pulse.silence == 5


@given(st.lists(st.tuples(st.integers(0, 50), st.floats(0, 1e4), st.booleans()), max_size=50))
def test_silence_never_exceeds_what_the_shippers_own_clock_passed(
    beats: list[tuple[int, float, bool]],
) -> None:
    pulse, taken = Pulse(), 0
    for sequence, monotonic, at_end in beats:
        before = pulse
        pulse = _beat(pulse, sequence, monotonic, at_end=at_end)
        taken += pulse is not before
        assert before.silence <= pulse.silence <= before.silence + 10
    assert pulse.silence <= 10 * max(taken - 1, 0)


def _present(*names: str) -> dict[str, Pulse]:
    return {name: Pulse(last_ms=100_000, silence=7.0) for name in names}


@pytest.mark.capability("X-14", "N-6")
def test_a_tenth_of_many_nodes_may_be_missing_and_of_one_none() -> None:
    names = [f"n{i}" for i in range(40)]
    pulses = _present(*names)
    for lost in names[:4]:
        pulses[lost] = Pulse(last_ms=0)
    assert quorum(pulses, nodes=40, progress_nodes=["n39"], now_ms=100_001).holds
    pulses["n4"] = Pulse(last_ms=0)
    assert not quorum(pulses, nodes=40, progress_nodes=["n39"], now_ms=100_001).holds
    assert not quorum({"n0": Pulse(last_ms=0)}, nodes=1, progress_nodes=["n0"], now_ms=100_001).holds


def test_the_job_is_as_silent_as_its_least_silent_node() -> None:
    pulses = _present("a", "b") | {"c": Pulse(last_ms=100_000, silence=3.0)}
    seen = quorum(pulses, nodes=3, progress_nodes=["a"], now_ms=100_001)
    assert silence_of_job(pulses, seen) == 3.0
