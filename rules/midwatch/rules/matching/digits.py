"""Whether a pattern can tell one digit from another. Pure."""

from __future__ import annotations

import re

_FINE = r"\\[^0-9xpPQC]"  # an escape of a sign, or of a class that holds every digit or none
_TELLS = r"(?P<tells>[0-9\\])"
_OUTSIDE = re.compile(
    rf"{_FINE}|\(\?P?<\w+>|\{{\d+(?:,\d*)?\}}"
    rf"|(?P<set>\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\])|{_TELLS}|.",
    re.DOTALL,
)
_INSIDE = re.compile(rf"{_FINE}|(?<!-)0-9|\[:\^?\w+:\]|{_TELLS}|.", re.DOTALL)


def digits_are_alike(pattern: str) -> bool:
    """Whether each digit of a text may be replaced by another without any effect on the spans of a match.

    It says no if it is not certain. A literal digit tells digits apart, and so does a range of some of them.
    """
    for token in _OUTSIDE.finditer(pattern):
        if token["tells"]:
            return False
        if token["set"] and any(inner["tells"] for inner in _INSIDE.finditer(token["set"])):
            return False
    return True
