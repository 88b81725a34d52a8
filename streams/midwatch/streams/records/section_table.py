"""Does a chunk's table describe its text? Checked once, where a chunk is read, so that nothing behind it has
to ask. Pure.

A table that does not add up would put lines into the wrong files, or be found out by an index error in the
midst of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from midwatch.streams.errors import MalformedRecord
from midwatch.streams.records import Section


def check_sections(sections: Sequence[Section], text: bytes) -> None:
    """Returns if the sections lie one behind the other in the text, with every line in its place.

    Raises:
        MalformedRecord: they do not; says which section, and what about it.
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
    lines = text.count(b"\n", start, stop)
    anchors = section.anchors
    reasons = (
        (section.size > 0 and text[stop - 1] != ord("\n"), "its text ends within a line"),
        (lines != section.lines, f"it says {section.lines} lines, its text has {lines}"),
        (
            lines > 0 and (not anchors or anchors[0].index != 0),
            "without an anchor of its first line, its lines have no place in a file",
        ),
        (any(one.index >= more.index for one, more in pairwise(anchors)), "its anchors are not in order"),
        (bool(anchors) and anchors[-1].index >= max(lines, 1), "an anchor stands behind its last line"),
        (section.context > lines, f"it says {section.context} lines of context, its text has {lines}"),
    )
    return next((reason for applies, reason in reasons if applies), "")
