"""A person who shortens a log marks what is left out."""

from __future__ import annotations

import pytest

from midwatch.streams.lines.left_out import marks_lines_left_out, says_nothing


@pytest.mark.parametrize("line", ["[...]", "...", " (...) ", "<...>\r", "[\u2026]", "\u2026"])
def test_a_line_that_is_only_a_mark_stands_for_others(line: str) -> None:
    assert marks_lines_left_out(line.encode())


@pytest.mark.parametrize("line", ["", "....", "loading ...", "[...] step 7", "[..]", "[...", "{...}"])
def test_any_other_line_stands_for_itself(line: str) -> None:
    assert not marks_lines_left_out(line.encode())


@pytest.mark.parametrize(("line", "nothing"), [("", True), (" \t", True), ("[...]", True), ("step 7", False)])
def test_a_blank_line_says_as_little_as_a_mark(line: str, *, nothing: bool) -> None:
    assert says_nothing(line.encode()) is nothing
