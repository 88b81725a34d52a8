"""Each line has the printed time of the nearest line above, and no line is searched for one twice."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midwatch.agents.replay import printed_times
from midwatch.agents.replay.printed_times import PrintedTimes
from midwatch.streams.records import Section
from midwatch.streams.records.logs import Anchor, Generation

STAMP = "2026-03-02 11:00:{second:02d} toy"
FIRST = 1772449200.0


def section(text: bytes) -> Section:
    lines = text.count(b"\n")
    return Section(
        "log", Generation(0, 7, "toy"), len(text), lines, (Anchor(0, 0, 0),), len(text), 0.0, FIRST + 9e4
    )


def times(lines: list[str]) -> list[float]:
    """The times of all pieces, the parts between carriage returns, in their order."""
    text = "".join(f"{line}\n" for line in lines).encode()
    known, ask, found, start = section(text), PrintedTimes(), list[float](), 0
    for piece in text.replace(b"\r", b"\n").split(b"\n")[:-1]:
        found.append(ask(known, text, start, start + len(piece)))
        start += len(piece) + 1
    return found


@given(st.lists(st.sampled_from(["toy", "7%\r9%", "stamp", "stamp\r7%"]), max_size=12))
def test_the_nearest_time_above_counts(kinds: list[str]) -> None:
    lines = [kind.replace("stamp", STAMP.format(second=index)) for index, kind in enumerate(kinds)]
    expected, latest = list[float](), math.nan
    for index, line in enumerate(lines):
        for piece in line.split("\r"):
            latest = FIRST + index if piece.startswith("2026") else latest
            expected.append(latest)
    assert times(lines) == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("end", ["\n", "\r"])
def test_a_bar_that_draws_itself_anew_costs_no_search_of_all_lines_above(
    end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = list[bytes]()

    def counted(line: bytes, **_others: object) -> None:
        read.append(line)

    monkeypatch.setattr(printed_times, "printed_time", counted)
    times(["toy"] * 150 + end.join(["7%"] * 150).split("\n"))
    assert len(read) <= 2 * 300
