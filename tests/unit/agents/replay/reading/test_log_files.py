"""The lines of a saved log: the last one is a line, whether or not a line feed ends it."""

from __future__ import annotations

import pytest

from midwatch.agents.replay.reading.log_files import LogFile, lines_beside


@pytest.mark.parametrize("end", ["", "\n"])
def test_the_last_line_needs_no_line_feed(end: str) -> None:
    file = LogFile("toy.log", f"the toy starts\nthe toy starts{end}".encode(), 0.0)
    whole = b"the toy starts"
    assert list(lines_beside(file, {b"toy starts"})) == [(0, 1, whole), (15, 2, whole)]


@pytest.mark.parametrize("end", ["", "\n"])
def test_lines_without_the_piece_stand_beside_it(end: str) -> None:
    file = LogFile("toy.log", f"the toy starts\nthe toy ends{end}".encode(), 0.0)
    assert [number for _, number, _ in lines_beside(file, {b"starts"})] == [1, 2]
    assert list(lines_beside(file, {b"falls"})) == []
