"""Text of a job made harmless for a channel. Pure.

A job may print whatever it likes: a mention of everybody, a link, the end of a block, a mail header.
"""

from __future__ import annotations

import re

_ZERO_WIDTH = "\u200b"
_MENTION = re.compile(r"@(?=\w)")


def slack(text: str) -> str:
    """For Slack's mrkdwn: `<`, `>` and `&` cannot begin a mention, a link or an entity any more."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def slack_code(text: str) -> str:
    """For a block of code in Slack's mrkdwn: no backtick of the text can end it."""
    return slack(text.replace("`", "\u02cb"))


def plain(text: str) -> str:
    """For a service that may read mentions or markup: `@word` mentions nobody, angle brackets are no tags."""
    return (
        _MENTION.sub(f"@{_ZERO_WIDTH}", text)
        .replace("<", "\u2039")
        .replace(">", "\u203a")
        .replace("`", "\u02cb")
    )


def header(text: str, longest: int = 200) -> str:
    """For a mail header: one line without control characters."""
    line = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(line.split())[:longest]
