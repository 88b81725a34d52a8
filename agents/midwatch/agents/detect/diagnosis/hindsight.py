"""What only warned, or told of something by the way, is held against a run once it has ended and nothing
better explains why. Pure.

Such lines stand in healthy logs too, so they never make a failure of a run; they only name the cause of one
that is known by its end alone (an exit code, a launcher's summary), and only where all of them point one way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from midwatch.agents.detect.line_order import in_order, maybe_earlier
from midwatch.streams.records import Hit
from midwatch.streams.records.error_types import family

_SAYS_NOTHING = ("exception", "unknown", "")


def may_explain(hit: Hit) -> bool:
    """Whether a line that is no evidence by itself is kept for the case that the run ends without another."""
    return hit.role == "context" and hit.severity != "info" and hit.error_type not in _SAYS_NOTHING


def is_bare_end(hit: Hit) -> bool:
    """A summary that knows that something ended badly, and not of what kind."""
    vague = hit.role == "consequence" and hit.fallback and hit.error_type in _SAYS_NOTHING
    return vague and "exception" not in hit.captures


def explanation(noted: Sequence[Hit], end: Hit | None) -> Hit | None:
    """The earliest of the lines before the end, as its cause; None where they point different ways. That the
    same start would go better is not known from it."""
    before = [hit for hit in noted if may_explain(hit) and (end is None or maybe_earlier(hit.line, end.line))]
    if len({family(hit.error_type) for hit in before}) != 1:
        return None
    first = min(before, key=in_order)
    return replace(first, role="cause", transient=False if first.transient is False else None, mode=None)
