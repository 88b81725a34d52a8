from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midwatch.streams.line_feeds import line_feeds

TEXTS = st.lists(st.sampled_from([b"\n", b"step", b"\r", b"\r\n", b"\x0b\x0c", b"loss: " * 60])).map(b"".join)


@given(text=TEXTS, marks=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_each_line_feed_counts_wherever_the_part_begins_and_ends(
    text: bytes, marks: tuple[float, float]
) -> None:
    start, end = sorted(int(mark * len(text)) for mark in marks)
    assert line_feeds(text, start, end) == text[start:end].count(b"\n")
    assert line_feeds(text) == text.count(b"\n")
    assert line_feeds(text, start, len(text) + 999) == text[start:].count(b"\n")
    assert line_feeds(text, len(text) + 1, len(text) + 999) == 0


@pytest.mark.parametrize("text", [b"", b"\n", b"no line is whole" * 40, b"\n" * 5000, b"\n" * 5000 + b"rest"])
def test_a_last_line_without_a_line_feed_does_not_count(text: bytes) -> None:
    assert line_feeds(text) == text.count(b"\n")
