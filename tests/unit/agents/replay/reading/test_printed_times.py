"""Each line has the printed time of the nearest line above, and no line is searched for one twice."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midwatch.agents.replay.reading import printed_times
from midwatch.agents.replay.reading.printed_times import PrintedTimes
from midwatch.streams.records import Section
from midwatch.streams.records.logs import Anchor, Generation

STAMP = "2026-03-02 11:00:{second:02d} toy"
FIRST = 1772449200.0


def section(text: bytes) -> Section:
    lines = text.count(b"\n")
    return Section(
        "log", Generation(0, 7, "toy"), len(text), lines, (Anchor(0, 0, 0),), len(text), 0.0, FIRST + 9e4
    )


def times(lines: list[str], rules: int = 1) -> list[float]:
    """The times of all lines in their order, each asked for by so many rules."""
    text = "".join(f"{line}\n" for line in lines).encode()
    known, ask, found, start = section(text), PrintedTimes(), list[float](), 0
    for line in text.splitlines(keepends=True):
        found += (ask(known, text, start, start + len(line) - 1) for _ in range(rules))
        start += len(line)
    return found


@given(st.lists(st.sampled_from(["toy", "7%", "stamp"]), max_size=12), st.integers(1, 3))
def test_the_nearest_time_above_counts(kinds: list[str], rules: int) -> None:
    lines = [kind.replace("stamp", STAMP.format(second=index)) for index, kind in enumerate(kinds)]
    expected, latest = list[float](), math.nan
    for index, line in enumerate(lines):
        latest = FIRST + index if line.startswith("2026") else latest
        expected += [latest] * rules
    assert times(lines, rules) == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("rules", [1, 3])
def test_a_line_that_many_rules_read_costs_no_search_of_all_lines_above(
    rules: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = list[bytes]()

    def counted(line: bytes, **_others: object) -> None:
        read.append(line)

    monkeypatch.setattr(printed_times, "printed_time", counted)
    times(["7%"] * 300, rules)
    assert len(read) <= 2 * 300
