"""Compiled expressions and sets of them, over bytes. Only this module calls google-re2.

The public API spends ten times the engine's time on encoding and on match objects. So this module calls the
raw binding where the pinned version has it (`_regexp.Match`, `_set.Match`), and the public API elsewhere. It
returns a set only compiled and tested. In this binding `Match` returns None before `Compile`, and kills the
interpreter after a failed `Compile`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import re2

Span = tuple[int, int]

SET_MEMORY = 256 << 20
"""Most bytes for the automaton of a set. Unused bytes cost nothing."""

UNANCHORED: Any = re2._Anchor.UNANCHORED
ANCHORED: Any = re2._Anchor.ANCHOR_START
"""The match must begin where the search begins."""


class PatternError(ValueError):
    """RE2 refuses a pattern; the text says why."""


def is_bytewise(pattern: str) -> bool:
    """Whether the pattern is compiled for single bytes (LATIN1) instead of UTF-8.

    True for ASCII patterns. Their `.` matches any byte, so a line with a damaged character still matches.
    """
    return pattern.isascii()


def options(*, bytewise: bool, within_lines: bool = False, memory: int = 0) -> Any:
    """RE2's options. `within_lines`: no part of the pattern may match a line feed."""
    re2_options = re2.Options()
    re2_options.log_errors = False
    re2_options.never_nl = within_lines
    if bytewise:
        re2_options.encoding = re2.Options.Encoding.LATIN1
    if memory:
        re2_options.max_mem = memory
    return re2_options


class Expression:
    """One compiled pattern. `search(line)` gives the spans of match and groups, or None."""

    __slots__ = ("_regexp", "group_count", "group_numbers", "pattern", "program_size", "raw_match")

    def __init__(
        self, pattern: str, *, within_lines: bool = False, multi_line: bool = False, memory: int = 0
    ) -> None:
        source = f"(?m){pattern}" if multi_line else pattern
        try:
            re2_options = options(bytewise=is_bytewise(pattern), within_lines=within_lines, memory=memory)
            self._regexp = re2._Regexp(source.encode(), re2_options)
        except re2.error as error:
            raise PatternError(_reason(error)) from None
        except UnicodeEncodeError as error:
            raise PatternError("the pattern holds half a surrogate pair") from error
        self.pattern = pattern
        self.group_count: int = self._regexp.groups
        self.program_size: int = self._regexp.programsize
        names: dict[bytes, int] = self._regexp.groupindex
        self.group_numbers = {name.decode(): number for name, number in names.items()}
        self.raw_match: Callable[[Any, bytes, int, int], Sequence[Span]] = self._regexp._regexp.Match

    def search(self, line: bytes) -> Sequence[Span] | None:
        """The span of the leftmost match and of each group, or None; an unused group has (-1, -1)."""
        spans = self.raw_match(UNANCHORED, line, 0, len(line))
        return spans if spans[0][0] >= 0 else None

    def search_from(self, text: bytes, start: int) -> Sequence[Span] | None:
        """The same from `start` to the end of a text; offsets count from the start of the text."""
        spans = self.raw_match(UNANCHORED, text, start, len(text))
        return spans if spans[0][0] >= 0 else None


def compile_set(
    patterns: Sequence[str], *, within_lines: bool = False, memory: int = SET_MEMORY
) -> Callable[[bytes], list[int]]:
    """A function from bytes to a new list: the indexes of the patterns found in them, in no order.

    All patterns must be of one kind (`is_bytewise`). With `within_lines` no match crosses a line feed, so a
    text of many lines gives what its lines give alone. Raises PatternError.
    """
    bytewise = is_bytewise(patterns[0])
    if any(is_bytewise(pattern) != bytewise for pattern in patterns):
        raise PatternError("patterns for bytes and for UTF-8 cannot share a set")
    built = re2.Set.SearchSet(options(bytewise=bytewise, within_lines=within_lines, memory=memory))
    try:
        for pattern in patterns:
            built.Add((f"(?m){pattern}" if within_lines else pattern).encode())
        built.Compile()
    except re2.error as error:
        raise PatternError(_reason(error)) from None
    matcher: Callable[[bytes], list[int]] = built._set.Match
    if matcher(b"") is None:
        raise PatternError("RE2 could not build the set")
    return matcher


def quote(text: str) -> str:
    """A pattern that matches exactly this text."""
    quoted: str = re2.escape(text)
    return quoted


def _reason(error: Exception) -> str:
    text = error.args[0] if error.args else ""
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
