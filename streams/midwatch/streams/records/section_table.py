"""Checks that a chunk's section table describes its text. Pure.

The reader of a chunk checks once, so later code can rely on the table. A wrong table would put lines into
wrong files, or cause an index error among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from midwatch.streams.errors import MalformedRecord
from midwatch.streams.line_feeds import line_feeds
from midwatch.streams.records import Section


def check_sections(sections: Sequence[Section], text: bytes) -> None:
    """Returns if the sections follow one another in the text, with every line in its place.

    Raises:
        MalformedRecord: they do not; it names the section and the problem.
    """
    if sum(section.size for section in sections) != len(text):
        raise MalformedRecord("the section table does not add up to the chunk's text")
    start = 0
    for number, section in enumerate(sections):
        stop = start + section.size
        if wrong := _wrong(section, text, start, stop):
            raise MalformedRecord(f"section {number}: {wrong}")
        start = stop


def _wrong(section: Section, text: bytes, start: int, stop: int) -> str:
    lines = line_feeds(text, start, stop)
    anchors = section.anchors
    reasons = (
        (section.size > 0 and text[stop - 1] != ord("\n"), "its text ends within a line"),
        (lines != section.lines, f"it claims {section.lines} lines, its text has {lines}"),
        (
            lines > 0 and (not anchors or anchors[0].index != 0),
            "its first line has no anchor, so its lines have no place in a file",
        ),
        (
            any(earlier.index >= later.index for earlier, later in pairwise(anchors)),
            "its anchors are not in order",
        ),
        (bool(anchors) and anchors[-1].index >= max(lines, 1), "an anchor is after its last line"),
        (section.context > lines, f"it claims {section.context} lines of context, its text has {lines}"),
    )
    return next((reason for applies, reason in reasons if applies), "")
