"""What to write instead of regular expression syntax that RE2 lacks."""

from __future__ import annotations

import re

_ADVICE = (
    (
        r"\(\?<?[=!]",
        "RE2 has no look-ahead or look-behind: match the whole text, and list what must not match "
        "as a second rule or in `no_match:`.",
    ),
    (r"\\[1-9]|\(\?P=", "RE2 has no back-references: repeat the sub-pattern."),
    (
        r"\(\?>|[*+?}]\+",
        "RE2 never backtracks, so it has no possessive or atomic groups: drop the extra `+` or `?>`.",
    ),
    (r"\\Z", "Write `\\z` or `$` for the end of the line."),
    (r"\(\?[a-zA-Z]*x", "RE2 has no verbose mode: write the pattern without blanks and comments."),
    (r"\(\?#", "RE2 has no comments in patterns: put them behind a YAML `#`."),
    (
        r"\(\?[a-zA-Z]*[auL]",
        "Drop the flags a, u and L: a pattern of ASCII characters is matched bytewise anyway.",
    ),
    (r"\\x\{", "A pattern of ASCII characters is matched bytewise: write the character itself."),
    (r"\{[0-9,]*[0-9]{4}", "RE2 repeats at most 1000 times: use `+` or `*`."),
)


def advice_for(pattern: str) -> str:
    """The remedy for a pattern that RE2 refused, by the first construct in it that RE2 lacks."""
    for construct, advice in _ADVICE:
        if re.search(construct, pattern):
            return advice
    return "The syntax is described at https://github.com/google/re2/wiki/Syntax."
