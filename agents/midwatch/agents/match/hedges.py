"""Hedges: words before a finding that only suppose it. A supposition explains, and reports nothing. Pure."""

from __future__ import annotations

import re
from functools import lru_cache

from midwatch.rules.matching.hits import Match
from midwatch.streams.lines.forms import form_of
from midwatch.streams.lines.launcher_prefix import front

_NEAR = 64  # bytes before the words in which their clause begins
_HEDGE = re.compile(
    rb"(?i)\b(?:may|might|could|can) (?:(?:also|well) )?(?:have been|have|be|happen)\b"
    rb"(?: (?:caused by|due to|because|if))?(?: \w+){0,3} ?\Z"
    rb"|\b(?<!as )(?:if|whether|possibly|perhaps) (?:(?!not\b)\w+ ){0,5}[\"'(]?\Z"
)


# A shell that traces, or lists its environment, shows the value of a variable.
_ASSIGNS = re.compile(rb"(?:\++ |export |declare -x )?_?[A-Z][A-Z0-9_]{3,}=")


def supposes(before: bytes) -> bool:
    """Whether the text right before a finding calls it possible: "may have been ", "if the node ".

    Only the clause counts: a comma, a colon or a full stop between them ends the supposition.
    """
    return _supposes(form_of(before[-_NEAR:]))


@lru_cache(maxsize=1024)
def _supposes(near: bytes) -> bool:
    return _HEDGE.search(near) is not None


def only_mentions(hit: Match) -> bool:
    """Whether the line only mentions what the rule looks for: it supposes it, cites it, or assigns it.

    A guide or a model's answer cites words in backticks. What a rule captures may reach behind the second
    one. What a variable holds was found out before.
    """
    if hit.rule.block:
        return False
    (start, end), *captured = hit.spans()
    line = hit.line
    words = min((first for first, last in captured if last == end and first > start), default=end)
    cited = line.count(b"`", 0, start) % 2 == 1 and b"`" in line[words:]
    assigned = _ASSIGNS.match(line, front(line[:start]))
    return cited or assigned is not None or (not hit.rule.at_start and supposes(line[:start]))
