"""Colours go, also where a browser or a collector spelled their escapes, and nothing else goes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midwatch.streams.lines.escapes import NO_BREAK, RESETS, has_escapes, without_escapes

SPELLED = ["", "\ufffd", "#033", "^[", "\\x1b", "\\x1B", "\\u001b", "\\033", "\\e", "␛", "←"]


@pytest.mark.parametrize("escape", ["\x1b", *SPELLED])
def test_a_colour_goes_however_its_escape_is_spelled(escape: str) -> None:
    line = f"{escape}[2m{escape}[38;5;12m(Toy pid=7){escape}[0m step {escape}[1m9{escape}[22m\n"
    assert without_escapes(line.encode()) == b"(Toy pid=7) step 9\n"


@pytest.mark.parametrize(
    "line",
    [
        "copy[3m] of 12",  # no colour ends
        "eta [36m] left, done [0]m",
        "x = a[0:m]; y = b[m]",
        "[10m elapsed] 3/9",
        "wrote ^[a-z]+$ and #033",
    ],
)
def test_a_line_in_which_no_colour_ends_stays(line: str) -> None:
    assert without_escapes(line.encode()) == line.encode()
    assert not has_escapes(line.encode())


def test_only_the_line_in_which_a_colour_ends_loses_its_colours() -> None:
    assert without_escapes(b"[36m left\n[36mToy[0m\n[3m") == b"[36m left\nToy\n[3m"


def test_blanks_of_a_web_page_are_blanks() -> None:
    line = "RuntimeError:\u00a0CUDA\u00a0error:\u00a0toy\u00a0assert é".encode()
    assert has_escapes(line)
    assert without_escapes(line) == "RuntimeError: CUDA error: toy assert é".encode()


@given(
    st.lists(
        st.sampled_from(["[", "0", "36", ";", "m", "[0m", "[36m", "^", "\x1b", "\n", "\u00a0", *SPELLED])
    )
)
def test_a_second_time_changes_nothing(pieces: list[str]) -> None:
    once = without_escapes("".join(pieces).encode())
    assert without_escapes(once) == once
    assert b"\x1b" not in once


@pytest.mark.parametrize("mark", [b"\x1b[31m", NO_BREAK, *RESETS])
@pytest.mark.parametrize("above", [0, 7, 9_000])
def test_a_long_text_is_searched_for_the_same_as_a_short_one(mark: bytes, above: int) -> None:
    plain = b"the toy rolls on\n" * 600
    assert not has_escapes(plain)
    assert has_escapes(plain[:above] + mark + plain[above:])
