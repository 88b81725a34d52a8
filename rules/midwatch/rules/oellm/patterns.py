r"""Translates patterns of Python's `re` over many lines into RE2 patterns for one line.

`extract_groups` takes each field from a group by name, a group by number, or the whole match.
Rules know only named groups. So a numbered group gets a name, and the whole match becomes a named group.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from midwatch.rules.expressions import Expression, PatternError, quote
from midwatch.rules.files.syntax_advice import advice_for

_WHOLE = "match"
_NAME = re.compile(r"[A-Za-z_]\w{0,40}\Z")
_WITHIN_A_LINE = re.compile(r"\[\^[^\]]*\]")  # a negated class names the line feed to stop there
_LINE_FEED = re.compile(r"(?<!\\)(?:\\\\)*(?:\\n|\n)(?![?*])")
_MAYBE_ACROSS = re.compile(r"\(\?[a-z]*s[a-z]*[):]|\[\\s\\S\]|\[\\S\\s\]|\[\\w\\W\]|\\n[?*]")


class NotTranslated(ValueError):
    """RE2 cannot search the pattern line by line. `remedy` says what to write instead."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class Translated:
    """The pattern for RE2, the field of each group, and how its matches may differ from the original's."""

    pattern: str
    captures: Mapping[str, str]  # group -> field
    left_out: tuple[str, ...] = ()  # fields for which the pattern has no group
    differs: str = ""


def translate_substring(text: str, groups: Mapping[str, str | int]) -> Translated:
    """A text to find literally. Only the whole match can be captured."""
    return _captured(quote(text), groups)


def translate(pattern: str, groups: Mapping[str, str | int]) -> Translated:
    """A regular expression. Raises NotTranslated."""
    if _LINE_FEED.search(_WITHIN_A_LINE.sub("", pattern)):
        raise NotTranslated(
            "the pattern needs a line feed, but midwatch searches one line at a time",
            "Match the one line that shows the event. Write two rules if both lines matter.",
        )
    translated = _captured(pattern, groups)
    try:
        expression = Expression(translated.pattern)
    except PatternError as error:
        raise NotTranslated(f"RE2 does not accept the pattern: {error}", advice_for(pattern)) from None
    if expression.search(b"") is not None:
        what = "the pattern matches an empty line, so it would match every line"
        raise NotTranslated(what, "Require at least one character that the message always has.")
    across = "the pattern may span lines, but midwatch matches it within one line only"
    return replace(translated, differs=across) if _MAYBE_ACROSS.search(pattern) else translated


def _captured(pattern: str, groups: Mapping[str, str | int]) -> Translated:
    opened = list(_groups(pattern))
    names = {name for _, name in opened if name}
    insertions: dict[int, str] = {}
    captures: dict[str, str] = {}
    left_out: list[str] = []
    whole = ""
    for field, group in groups.items():
        if group in (_WHOLE, 0) and group not in names:
            whole = whole or _fresh(field, names)
            captures.setdefault(whole, field)
        elif isinstance(group, int):
            if not 1 <= group <= len(opened):
                left_out.append(field)
                continue
            place, name = opened[group - 1]
            name = name or insertions.get(place) or _fresh(field, names)
            if not opened[group - 1][1]:
                insertions[place] = name
            captures.setdefault(name, field)
        elif group in names:
            if captures.setdefault(group, field) != field:
                left_out.append(field)
        else:
            left_out.append(field)
    for place in sorted(insertions, reverse=True):
        pattern = f"{pattern[: place + 1]}?P<{insertions[place]}>{pattern[place + 1 :]}"
    if whole:
        pattern = f"(?P<{whole}>{pattern})"
    return Translated(pattern, captures, tuple(left_out))


def _fresh(field: str, taken: set[str]) -> str:
    """A free group name for a field: the field's own name where that is possible."""
    stem = field if _NAME.match(field) else "field"
    name, number = stem, 2
    while name in taken:
        name, number = f"{stem}_{number}", number + 1
    taken.add(name)
    return name


def _groups(pattern: str) -> Iterator[tuple[int, str]]:
    """Where each capturing group opens, and its name ("" if it has none), in the order of their numbers."""
    at, in_class = 0, False
    while at < len(pattern):
        character = pattern[at]
        if character == "\\":
            at += 2
            continue
        if in_class:
            in_class = character != "]"
        elif character == "[":
            in_class = True
            at += 1 + (pattern[at + 1 : at + 2] == "^")
            at += pattern[at : at + 1] == "]"
            continue
        elif character == "(":
            named = re.match(r"\(\?P?<([A-Za-z_]\w*)>", pattern[at:])
            if named:
                yield at, named[1]
            elif pattern[at + 1 : at + 2] != "?":
                yield at, ""
        at += 1
