"""Which hits of a line stay: those of its most specific rules, at the place that the rule asks for. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise
from operator import itemgetter

from midwatch.agents.match.listed_steps import LONG, lists_steps
from midwatch.agents.match.progress_columns import strongest
from midwatch.agents.match.tracebacks import begins_line, is_logged, place_of
from midwatch.rules.matching.hits import Match, Row
from midwatch.rules.model import Role, Rule

ANY_EXCEPTION = "exception"
"""The least specific error type."""
ANY_OF_TORCH = "torch"
"""The error type of what torch or CUDA refuses. A fallback that knows the kind knows more."""

_start: Callable[[Row], int] = itemgetter(2)


def most_specific(rows: Sequence[Row]) -> list[Row]:
    """The hits of a chunk, sorted by line, less fallbacks on lines with a more specific hit.

    Progress is weighed by itself: it is not more specific. A hit whose rule asks for the start of a line is
    left out elsewhere. So is progress in a line that lists many steps.
    """
    placed = [
        row
        for row in rows
        if (not row[0].rule.at_start or _at_its_place(row))
        and (row[3] - row[2] < LONG or not lists_steps(row))
    ]
    starts = list(map(_start, placed))
    kept: list[Row] = []
    done = 0
    # Few lines have several hits, so what lies between two of these lines stays as it is.
    for shared in [at for at, (one, next_one) in enumerate(pairwise(starts)) if one == next_one]:
        if shared >= done:
            kept += placed[done:shared]
            done = bisect_right(starts, starts[shared], shared)
            kept += _most_specific(placed[shared:done])
    return kept + placed[done:] if done else placed


def _at_its_place(row: Row) -> bool:
    """Whether the hit of a rule for the start of a line stands there."""
    rule = row[0].rule
    if rule.block:
        return True
    hit = Match._make(row)
    start = hit.spans()[0][0]
    if begins_line(hit.line, start):
        return True
    return is_logged(hit.line, start) and place_of(hit.chunk, hit.start, hit.end, hit.form).ends_traceback


def _most_specific(found: list[Row]) -> list[Row]:
    progress = [row for row in found if row[0].rule.role is Role.PROGRESS]
    if len(progress) == len(found):
        return strongest(progress)
    others = [row for row in found if row[0].rule.role is not Role.PROGRESS]
    specific = [row for row in others if not row[0].rule.fallback]
    specific = specific or _that_know_most(others)
    specific = specific or [row for row in others if not row[0].rule.block]
    return strongest(progress) + (specific or others)


def _that_know_most(others: list[Row]) -> list[Row]:
    """The fallbacks of a line without causes that know less of the failure than another one does."""
    most = max((_known(row[0].rule) for row in others if row[0].rule.role is Role.CAUSE), default=0)
    return [row for row in others if row[0].rule.role is not Role.CAUSE or _known(row[0].rule) == most > 0]


def _known(rule: Rule) -> int:
    """What a cause knows of a failure: 0 only that there was one, 1 which library raised it, 2 its kind."""
    return {ANY_EXCEPTION: 0, ANY_OF_TORCH: 1}.get(rule.error_type, 2) if rule.fallback else 2
