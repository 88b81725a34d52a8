"""Which of many patterns a line holds: one search of the line, and another one where it is not ASCII."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from midwatch.rules.expressions import Expression, PatternError, compile_set, is_bytewise

FindRules = Callable[[bytes], list[int]]

_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_QUOTES = r"\Q"
_FOLDS = re.compile(r"\(\?[a-zA-Z]*i")
_FOLDS_INTO_ASCII = re.compile(r"[\u212a\u017f]|[^\x00-\x7f]-|-[^\x00-\x7f]")


def rule_finder(patterns: Sequence[str]) -> FindRules:
    """A function from a line to the indexes of the patterns found in it, in no order.

    Patterns for bytes and patterns for UTF-8 cannot share a set. But most lines are ASCII, and for these the
    twins of the few UTF-8 patterns share the set of the others.
    """
    in_utf8 = [index for index, pattern in enumerate(patterns) if not is_bytewise(pattern)]
    if not patterns:
        return lambda _: []
    if not in_utf8:
        return compile_set(patterns)
    find_utf8 = compile_set([patterns[index] for index in in_utf8])
    in_bytes = [index for index, pattern in enumerate(patterns) if is_bytewise(pattern)]
    twins = [ascii_twin(patterns[index]) for index in in_utf8]
    known = [twin for twin in twins if twin is not None]
    first = [patterns[index] for index in in_bytes] + (known if len(known) == len(twins) else [])
    if not first:
        return lambda line: [in_utf8[index] for index in find_utf8(line)]
    find_first, indexes, count = compile_set(first), in_bytes + in_utf8, len(in_bytes)
    ascii_is_done = len(first) > count

    def find(line: bytes) -> list[int]:
        found = find_first(line)
        if ascii_is_done and line.isascii():
            return [indexes[index] for index in found]
        return [
            *(indexes[index] for index in found if index < count),
            *(in_utf8[index] for index in find_utf8(line)),
        ]

    return find


def ascii_twin(pattern: str) -> str | None:
    r"""A pattern for bytes that is found in the same ASCII lines as a UTF-8 pattern; None if none is known.

    A byte that no ASCII line holds stands for each other character. `(?i)` folds a few of these into ASCII,
    alone or within a range, and behind `\Q` an escape is text: then no twin is known.
    """
    if _QUOTES in pattern or (_FOLDS.search(pattern) and _FOLDS_INTO_ASCII.search(pattern)):
        return None
    twin = _NOT_ASCII.sub(r"\\x{80}", pattern)
    try:
        Expression(twin)
    except PatternError:
        return None
    return twin
