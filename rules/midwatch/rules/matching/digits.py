"""What of a pattern tells one digit from another. Pure."""

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
_SOME_DIGITS = re.compile(rf"(?P<kept>{_FINE}|\[:\^?\w+:\])|\d-\d|\d")


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


def with_any_digit(pattern: str) -> str | None:
    """A pattern that treats all digits alike and is found wherever this one is; None if none is known.

    It has any digit where this one has a certain digit or a range of some.
    """
    if any(_is_a_number(token) for token in _OUTSIDE.finditer(pattern)):
        return None
    wider = _OUTSIDE.sub(lambda token: _wider_set(token[0]) if token["set"] else _wider(token), pattern)
    return wider if digits_are_alike(wider) else None


def _is_a_number(token: re.Match[str]) -> bool:
    """Whether an escape gives a character by its number or its name, so that its digits are no digits."""
    tokens = _INSIDE.finditer(token["set"]) if token["set"] else (token,)
    return any(each["tells"] == "\\" for each in tokens)


def _wider(token: re.Match[str]) -> str:
    return r"\d" if token["tells"] else token[0]


def _wider_set(written: str) -> str:
    """The set with all digits if it holds some of them; a set of what is left out leaves out no digit."""
    if not any(inner["tells"] for inner in _INSIDE.finditer(written)):
        return written
    without = _SOME_DIGITS.sub(lambda part: part["kept"] or "", written)
    if written.startswith("[^"):
        return without if without != "[^]" else "."  # no line holds a line feed
    return f"{without[:-1]}0-9]"
