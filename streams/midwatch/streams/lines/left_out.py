"""Marks for lines left out: what a person who shortens a log prints in their place. Pure."""

from __future__ import annotations

_MARKS = frozenset((b"[...]", b"(...)", b"<...>", b"...", "[\u2026]".encode(), "\u2026".encode()))


def marks_lines_left_out(line: bytes) -> bool:
    """Whether the line is only such a mark. A process seldom prints one: what it parts may be one text."""
    return line.strip() in _MARKS


def says_nothing(line: bytes) -> bool:
    """Whether the line is blank, or such a mark."""
    return not line.strip() or marks_lines_left_out(line)
