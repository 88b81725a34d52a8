"""Text of a job made harmless for a channel. Pure.

A job may print whatever it likes: a mention of everybody, a link, the end of a block, a mail header.
"""

from __future__ import annotations

import re

_ZERO_WIDTH = "\u200b"
_GRAVE = "\u02cb"
"""Looks like a backtick, and is none."""
_MENTION = re.compile(r"@(?=\w)")


def slack(text: str) -> str:
    """For Slack's mrkdwn: nothing begins a mention, a link or an entity, no backtick ends a block of code."""
    safe = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return safe.replace("`", _GRAVE)


def plain(text: str) -> str:
    """For a service that may read mentions or markup: `@word` mentions nobody, angle brackets are no tags."""
    return (
        _MENTION.sub(f"@{_ZERO_WIDTH}", text)
        .replace("<", "\u2039")
        .replace(">", "\u203a")
        .replace("`", _GRAVE)
    )


def header(text: str, longest: int = 200) -> str:
    """For a mail header: one line without control characters."""
    line = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(line.split())[:longest]
