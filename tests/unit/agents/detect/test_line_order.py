"""Which of two lines came first, and what nobody knows."""

from __future__ import annotations

import pytest

from midwatch.agents.detect.line_order import earlier, maybe_earlier
from midwatch.streams.records import Line


def line(number: int, time: float, path: str = "/log", node: str = "n0") -> Line:
    return Line("", path, number, 0, time, node)


@pytest.mark.parametrize("time", [1.0, 2.0, 3.0])
def test_in_one_file_the_number_decides_whatever_the_clock_says(time: float) -> None:
    first, second = line(1, 2.0), line(2, time)
    for before in (earlier, maybe_earlier):
        assert before(first, second)
        assert not before(second, first)
        assert not before(first, first)


@pytest.mark.parametrize("other", [line(1, 2.0, path="/other"), line(1, 2.0, node="n1")])
def test_in_two_files_the_time_decides_and_at_one_time_nobody_knows(other: Line) -> None:
    assert earlier(line(9, 1.0), other)
    assert not maybe_earlier(line(9, 3.0), other)
    same = line(9, 2.0)
    assert not earlier(same, other)
    assert not earlier(other, same)
    assert maybe_earlier(same, other)
    assert maybe_earlier(other, same)
