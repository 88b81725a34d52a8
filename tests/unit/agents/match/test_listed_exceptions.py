"""Exceptions that a text lists: help on a function, and a table of how often each was met."""

from __future__ import annotations

import pytest

from midwatch.agents.match.listed_exceptions import is_listed
from unit.agents.conftest import Watch

HELP = """Help on function paint in module toys:

paint(toy, colour)
    Paints a toy.

    Raises:
        TypeError: If the `toy` has no wheels.
        ValueError: If the colour is none.

    Examples:
        >>> paint(toy, "red")
"""
TABLE = """kind
ToyError: the wheel fell off    7
RuntimeError: no paint          3
Name: count, dtype: int64
"""


@pytest.mark.parametrize("text", [HELP, TABLE, TABLE.replace("Name: count, ", "")])
def test_a_text_that_lists_exceptions_reports_none(watch: Watch, text: str) -> None:
    assert watch(f"reading toys\n{text}").verdict.state != "failed"


@pytest.mark.parametrize(
    "text",
    [
        HELP.replace("Raises:", "While it painted:"),
        TABLE.replace("Name: count, dtype: int64\n", ""),
        TABLE.replace("    7", " 7").replace("          3", " 3"),
    ],
)
def test_other_lines_that_begin_with_an_exception_report_one(watch: Watch, text: str) -> None:
    assert watch(f"reading toys\n{text}").verdict.state == "failed"


@pytest.mark.parametrize(
    ("above", "listed"),
    [
        ("  Raises:\n    OtherError: odd\n      if it is", True),
        ("  Raises:\n  Returns:", False),
        ("Raises:", True),
        ("", False),
    ],
)
def test_the_nearest_line_that_stands_less_deep_heads_the_list(above: str, *, listed: bool) -> None:
    text = f"{above}\n    ToyError: odd\n".encode()
    start = text.index(b"    ToyError")
    assert is_listed(text, start, len(text) - 1) is listed


@pytest.mark.parametrize(("below", "listed"), [("dtype: int64", True), ("the end", False)])
def test_a_row_needs_the_type_of_its_column_below(below: str, *, listed: bool) -> None:
    row = b"ToyError: odd     7"
    assert is_listed(row + b"\n" + below.encode() + b"\n", 0, len(row)) is listed
