"""Code that IPython shows around the line that failed reports nothing, whatever words it holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midwatch.agents.match.code_listings import is_listed
from unit.agents.conftest import Watch

LISTING = """File ~/toy/paint.py:310, in mix()
    305     raise ToyError(
    306         "odd toys say: Cannot re-initialize CUDA in forked subprocess"
    307         "or they may be out of memory"
    308     )
--> 310     raise AssertionError("Torch not compiled with CUDA enabled")
    311 if brush is None:

AssertionError: Torch not compiled with CUDA enabled
"""


def shown(text: str, words: str) -> bool:
    start = text.rfind("\n", 0, text.index(words)) + 1
    return is_listed(text.encode(), start, text.index("\n", start))


@pytest.mark.parametrize("words", ["Cannot re-init", "307 ", "--> 310", "311 if"])
def test_the_lines_around_an_arrow_are_a_listing(words: str) -> None:
    assert shown(LISTING, words)


@pytest.mark.parametrize("words", ["File ~/toy", "\nAssertionError"])
def test_the_file_and_the_exception_are_none(words: str) -> None:
    assert not shown(LISTING, words.strip("\n") if words[0] != "\n" else "AssertionError: Torch")


def test_a_short_arrow_counts_beside_other_numbers_only() -> None:
    assert shown("   1003 # may be out of memory\n-> 1004 toy()\n", "1003")
    assert shown("-> 1004 toy()\n   (...)\n   1012 # may be out of memory\n", "1012")
    assert shown("   (...)     7     toy: toys.Timeout = 9\n--> 12 toy()\n", "(...)")
    assert not shown("-> 1004 toys are out of memory\n", "1004")


def test_rows_of_a_table_are_no_listing() -> None:
    assert not shown("  7  CUDA out of memory\n  8  done\n", "7")
    assert not shown("---> 7 toys\nthe toys go on\n  8 CUDA out of memory\n", "8 CUDA")


@pytest.mark.parametrize("colour", ["", "\x1b[1;32m"])
def test_the_exception_is_the_root_and_not_the_code_around_it(watch: Watch, colour: str) -> None:
    done = watch("".join(f"{colour}{line}\n" for line in LISTING.splitlines()))
    assert done.verdict.root_line_number == len(LISTING.splitlines())


@given(st.text("> -12\n(.) a", max_size=200), st.integers(0, 200))
def test_what_is_shown_has_a_number(text: str, at: int) -> None:
    start = text.rfind("\n", 0, min(at, len(text))) + 1
    end = text.find("\n", start)
    line = text[start : len(text) if end < 0 else end]
    if is_listed(text.encode(), start, start + len(line)):
        assert line.lstrip(" ->(.)")[:1].isdigit()
