"""Which of two lines came first, and what nobody knows."""

from __future__ import annotations

import pytest

from midwatch.agents.detect.line_order import AT_ANY_TIME, FirstAndLast, earlier, maybe_earlier
from midwatch.streams.records import Hit, Line


def line(number: int, time: float, path: str = "/log", node: str = "n0") -> Line:
    return Line("", path, number, 0, time, node)


def hit(of: Line) -> Hit:
    return Hit("toy", "cause", "exception", "code", "error", None, of, 0, "file")


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


def test_a_line_of_any_time_has_no_order_to_those_of_other_files() -> None:
    known, unknown = line(9, 2.0), line(1, AT_ANY_TIME, path="/other")
    third = line(1, AT_ANY_TIME, path="/third")
    for one, other in ((known, unknown), (unknown, known), (unknown, third)):
        assert not earlier(one, other)
        assert maybe_earlier(one, other)
    assert earlier(unknown, line(2, AT_ANY_TIME, path="/other"))
    assert not maybe_earlier(line(2, AT_ANY_TIME, path="/other"), unknown)


def test_lines_of_any_time_hide_no_other_line_of_a_search() -> None:
    last = hit(line(9, 2.0))
    some = FirstAndLast([last, *(hit(line(1, AT_ANY_TIME, path=f"/toy{n}")) for n in range(3))])
    assert some.behind(line(1, 1.0, path="/another")) is last
    assert some.behind(line(1, 3.0, path="/another")) is None
    assert some.before(line(1, 3.0, path="/another")) is last
    assert some.before(line(1, 1.0, path="/another")) is None
