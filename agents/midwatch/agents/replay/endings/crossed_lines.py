"""Crossed lines: a cross or a stop sign in front of what a program could not do. Pure.

Programs that print signs use them as a level. A cross alone may stand in front of a verdict on a model, or in
a row of a table. So words of a failure must follow, and no number: a count is a result.
"""

from __future__ import annotations

import re

_STAMP = rb"\A[\s\d\[\]():.,/TZ|+-]*(?:[A-Z]+[\s\]:|-]+)?"
_SIGNS = "\u274c\u2716\u2717\u2718\u26d4\U0001f6d1\U0001f6ab\U0001f4a5"
_SIGN = b"(?:" + b"|".join(sign.encode() for sign in _SIGNS) + b")"
_COULD_NOT = (
    rb"\b(?:(?:could ?n[o']t|can(?:no|')t|unable to|failed to) (?:be )?"
    rb"(?:find|found|open|load|read|start|access|connect|import|locate|run|create|write|save)\w*"
    rb"|not found\b|does ?n[o']t exist|no such|is missing|errors?\b)(?!\W*\d)"
)
_ERRNO = rb"\[(?:Errno|WinError) \d+\]"
_IN_OTHER_LANGUAGES = (
    "(?:\\bhata|\\b(?:erreur|fehler|erro|errore)\\b|шибка|错误|錯誤|失败|失敗|エラー|오류|실패)"
)
_CROSSED = re.compile(
    _STAMP
    + _SIGN
    + rb"(?i:.{0,80}?(?:"
    + b"|".join((_COULD_NOT, _ERRNO, _IN_OTHER_LANGUAGES.encode()))
    + rb"))"
)


def is_crossed(words: bytes) -> bool:
    """Whether the line, without what a launcher prints in front, is such a line."""
    return _CROSSED.match(words) is not None
