"""When a line was written: what it says of itself, if that can be true."""

from __future__ import annotations

import random
import re
from datetime import UTC, datetime, timedelta, timezone

import pytest

from midwatch.streams.lines import times
from midwatch.streams.lines.times import line_time, printed_time

AT = datetime(2026, 11, 20, 7, 32, 5, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b" [2026-11-20 07:32:05] iteration 12/100 | lm loss: 2.1", AT),
        (b"2026-11-20 07:32:05,250 - train - INFO - step 12", AT + 0.25),
        (b"2026-11-20T07:32:05.5Z step 12", AT + 0.5),
        (b"2026-11-20T09:32:05.5+02:00 step 12", AT + 0.5),
        (b"2026/11/20 07:32:05 [notice] worker started", AT),
        (b"[rank3]: E1120 07:32:05.250000 139 watchdog.cc:12] stuck", AT + 0.25),
        (b"I20261120 07:32:05.250000 139 main.cc:12] up", AT + 0.25),
        (b"11/20/2026 07:32:05 - INFO - __main__ - step 12", AT),
        (b"[11/20/26 07:32:05] INFO step 12", AT),
        (b"Nov 20 07:32:05 node7 kernel: NVRM: Xid", AT),
        (b"[1795159925.250000] [node7:139  :0]  UCX  ERROR", AT + 0.25),
        (b"I1120 07:32:05.250000 139 eta.cc:1] ready at 2026-11-20 09:00:00", AT + 0.25),
        (b"Nov 20 07:32:05 node7 train: [2026-11-20 09:00:00] step 12", AT),
        (b"iteration 12/100 took 07:32:05", None),
        (b"2026-02-31 07:32:05 no such day", None),
        (b"x" * 300 + b"2026-11-20 07:32:05", None),
        (b"version 2026-11-20", None),
    ],
)
def test_the_usual_forms_are_read(line: bytes, expected: float | None) -> None:
    assert printed_time(line, read_at=AT + 60) == expected


def test_torch_s_nanoseconds_are_of_another_clock_and_order_nothing() -> None:
    line = b"[rank3]:[E1120 07:32:05.058435806 ProcessGroupNCCL.cpp:632] [Rank 3] Watchdog caught"
    step = printed_time(b"[2026-11-20 07:32:05.900000] iteration 24/40", read_at=AT + 60)
    printed = printed_time(line, read_at=AT + 60)
    assert step is not None
    assert printed is not None
    assert step < printed < AT + 1
    assert line_time(line, AT + 0.2, AT + 0.4, UTC) == printed


@pytest.mark.parametrize(("number", "month"), [("320", 3), ("930", 9), ("1001", 10)])
def test_torch_writes_month_and_day_as_one_number(number: str, month: int) -> None:
    at = datetime(2026, month, int(number[-2:]), 7, 32, 5, tzinfo=UTC).timestamp()
    line = f"[rank3]:[E{number} 07:32:05.058435806 toy.cpp:77] [Rank 3] Watchdog caught"
    printed = printed_time(line.encode(), read_at=at + 60)
    assert printed is not None
    assert at < printed < at + 1


def test_a_time_without_a_year_is_the_last_such_day() -> None:
    new_year = datetime(2027, 1, 1, 0, 0, 10, tzinfo=UTC).timestamp()
    printed = printed_time(b"E1231 23:59:59.000000 139 a.cc:1] x", read_at=new_year)
    assert printed == new_year - 11
    assert printed_time(b"E1231 23:59:59.000000 139 a.cc:1] x") is None


def test_a_time_between_two_reads_is_believed() -> None:
    assert line_time(b"2026-11-20 07:32:05.250 x", AT, AT + 1, UTC) == AT + 0.25


@pytest.mark.parametrize("seconds", [-30, 30])
def test_a_time_outside_of_them_is_not(seconds: int) -> None:
    assert line_time(b"2026-11-20 07:32:05.250 x", AT + seconds, AT + seconds + 1, UTC) == AT + seconds + 1


def test_whole_seconds_are_not_held_against_a_line_and_stay_as_printed() -> None:
    """Whoever knows no reads comes to the same order of lines."""
    line = b"[2026-11-20 07:32:05] x"
    assert line_time(line, AT + 0.4, AT + 0.6, UTC) == printed_time(line, read_at=AT + 60) == AT


def test_the_first_read_believes_what_lies_before_it() -> None:
    assert line_time(b"2026-11-20 07:32:05 x", 0.0, AT + 9000, UTC) == AT


def test_the_zone_of_the_node_counts() -> None:
    zone = timezone(timedelta(hours=9))
    assert line_time(b"2026-11-20 16:32:05.5 x", AT, AT + 1, zone) == AT + 0.5


def test_an_unknown_zone_is_told_from_the_minutes() -> None:
    assert line_time(b"2026-11-20 13:17:05.5 x", AT, AT + 1) == AT + 0.5  # Kathmandu
    assert line_time(b"2026-11-20 13:18:05.5 x", AT, AT + 1) == AT + 1


def test_a_line_without_a_time_was_written_when_it_was_read() -> None:
    assert line_time(b"step 12", AT, AT + 1) == AT + 1


def test_the_short_way_to_the_usual_form_gives_what_the_search_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(11)
    heads = ("", "[", " [", "[rank3]: [", "[default12]:", "A ", "E1120 07:32:05 ", "(x) ", "1: ", "éé[")
    tails = (
        "",
        "]",
        ",123",
        ".5]",
        ".123456789012",
        "Z",
        "+0100",
        " +01:00",
        " - INFO",
        ", x",
        ":07",
        "7",
        "-3",
    )
    lines = []
    for _ in range(4000):
        year, month, day = chance.randrange(1990, 2100), chance.randrange(15), chance.randrange(34)
        date = f"{year}{chance.choice('-/')}{month:02}-{day:02}"
        clock = f"{chance.randrange(26):02}:{chance.randrange(62):02}:{chance.randrange(62):02}"
        text = f"{chance.choice(heads)}{date}{chance.choice('T ')}{clock}{chance.choice(tails)} loss 2.5"
        lines.append(text.encode())
    quick = [(printed_time(line), line_time(line, 1.7e9, 1.9e9)) for line in lines]
    monkeypatch.setattr(times, "_USUAL", re.compile(rb"(?!)"))
    assert quick == [(printed_time(line), line_time(line, 1.7e9, 1.9e9)) for line in lines]
    assert sum(time is not None for time, _ in quick) > 1000
