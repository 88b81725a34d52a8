"""What of a pattern tells one digit from another. Pure."""

from __future__ import annotations

import re

_SIGN_BY_NUMBER = r"x(?!3[0-9]|\{0*3[0-9]\})(?:[0-7][0-9A-Fa-f]|\{0*[0-7]?[0-9A-Fa-f]\})"
# An escape of a sign, or of a class that holds every digit or none.
_FINE = rf"\\(?:[^0-9xpPQC]|{_SIGN_BY_NUMBER})"
_TELLS = r"(?P<tells>[0-9\\])"
_OUTSIDE = re.compile(
    rf"{_FINE}|\(\?P?<\w+>|\{{\d+(?:,\d*)?\}}"
    rf"|(?P<set>\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\])|{_TELLS}|.",
    re.DOTALL,
)
_INSIDE = re.compile(rf"{_FINE}|(?<!-)0-9|\[:\^?\w+:\]|{_TELLS}|.", re.DOTALL)
_NOT_OF_A_CLASS = {r"\D": r"[^\d\x00]", r"\S": r"[^\s\x00]", r"\W": r"[^\w\x00]", ".": r"[^\x00]"}
MARK = b"\0"
"""What stands for the digit in question in `with_a_mark`; no normalised line holds it."""
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


def with_a_mark(pattern: str) -> str | None:
    """A pattern that shows whether a digit of a line can decide on this one; None if none is known.

    `MARK` stands in the digit's place, and nowhere else. If a certain digit of this pattern, or a range of
    some, can meet that place within a match, then the pattern is found. Where it is not found, no value of
    that digit changes whether this one is found in the line.
    """
    if not pattern.isascii() or with_any_digit(pattern) is None:
        return None
    marked = _OUTSIDE.sub(lambda token: _marked_set(token[0]) if token["set"] else _marked(token), pattern)
    return rf"\A[^\x00]*(?:{marked})[^\x00]*\z"


def _marked(token: re.Match[str]) -> str:
    if token["tells"]:
        return r"[\d\x00]"
    written = token[0]
    # The mark is no part of a word, so a boundary beside it would be another one.
    return "(?:)" if written in (r"\b", r"\B") else _NOT_OF_A_CLASS.get(written, written)


def _marked_set(written: str) -> str:
    """The set with the mark if it tells digits apart; else without, as far as it is known to hold it."""
    wider = _wider_set(written)
    if wider == "." or (wider.startswith("[^") == (wider != written)):
        return wider
    start = 2 if wider.startswith("[^") else 1
    escape = "\\" if wider[start] in "]-" else ""
    return rf"{wider[:start]}\x00{escape}{wider[start:]}"


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
