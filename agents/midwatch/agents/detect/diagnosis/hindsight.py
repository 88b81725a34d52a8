"""Hindsight: warnings and remarks explain the end of a run that no other line explains. Pure.

Healthy logs hold such lines too, so they never prove a failure. They only name the cause of a failure that is
known by its end alone (an exit code, a launcher's summary). They must all point to one family of error types.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from midwatch.agents.detect.line_order import in_order, maybe_earlier
from midwatch.streams.records import Hit
from midwatch.streams.records.error_types import family

_UNSPECIFIC = ("exception", "unknown", "")


def may_explain(hit: Hit) -> bool:
    """Whether detect keeps a context line, in case the run ends without any better explanation."""
    return hit.role == "context" and hit.severity != "info" and hit.error_type not in _UNSPECIFIC


def is_bare_end(hit: Hit) -> bool:
    """Whether the line is a summary that knows only that something failed."""
    vague = hit.role == "consequence" and hit.fallback and hit.error_type in _UNSPECIFIC
    return vague and "exception" not in hit.captures


def explanation(noted: Sequence[Hit], end: Hit | None) -> Hit | None:
    """The earliest line before the end, as its cause; None if the lines are of several families.

    Such a cause never proves that a restart would succeed, so `transient` is never True.
    """
    before = [hit for hit in noted if may_explain(hit) and (end is None or maybe_earlier(hit.line, end.line))]
    if len({family(hit.error_type) for hit in before}) != 1:
        return None
    first = min(before, key=in_order)
    return replace(first, role="cause", transient=False if first.transient is False else None, mode=None)
