"""Hedges: words before a finding that only suppose it. A supposition explains, and reports nothing. Pure."""

from __future__ import annotations

import re

_NEAR = 64  # bytes before the words in which their clause begins
_HEDGE = re.compile(
    rb"(?i)\b(?:may|might|can|could) (?:(?:also|well|have|be|been|happen) )*"
    rb"(?:(?:caused by|due to|because|if) )?(?:(?:an?|the|your|this) )?(?:\w+ ){0,2}\Z"
    rb"|\b(?:if|whether|possibly|perhaps|maybe) (?:(?!not\b)\w+ ){0,5}\Z"
)


def supposes(before: bytes) -> bool:
    """Whether the text right before a finding calls it possible: "may have been ", "if the node ".

    Only the clause counts: a comma, a colon or a full stop between them ends the supposition.
    """
    return _HEDGE.search(before[-_NEAR:]) is not None
