"""A part of the loss that is no number, in a record whose loss and gradients are numbers. Pure.

A mean over tokens of one kind is nan where a batch holds none of them. Records of verl show such parts
beside the loss that was trained on. A nan in that loss would be one in the norm of its gradients, too. So it
would in the total of all parts, where the record shows that.
"""

from __future__ import annotations

import re

_NOT_A_NUMBER = re.compile(rb"(?P<name>[\w/.-]{0,64})loss(?P<rest>_\w+)?['\"]?\s*[:=]\s*(?i:-?(?:nan|inf)\b)")
_NAMED_WITH_A_BLANK = re.compile(
    rb"(?i)(?<![\w/.-])(?!(?:train(?:ing)?|total|avg|mean|epoch|step|batch|val\w*|test) )"
    rb"[a-z][\w-]* loss\s*[:=]\s*-?(?:nan|inf)\b"
)
_TOTAL = re.compile(rb"(?i)\b(?:avg|average|total|mean|overall|sum)[_ ]?loss['\"]?\s*[:=]\s*-?\d")
_A_NUMBER = re.compile(rb"loss['\"]?\s*[:=]\s*-?\d")
_GRADIENTS = re.compile(rb"grad_?norm['\"]?\s*[:=]\s*\d")


def is_only_a_part(line: bytes) -> bool:
    """Whether only named parts of the loss are no numbers in the line; its gradients or its total are."""
    broken = list(_NOT_A_NUMBER.finditer(line))
    named = [found for found in broken if found["name"].rpartition(b"/")[2] or found["rest"]]
    if not broken:
        return False
    if len(named) == len(broken) and all(what.search(line) for what in (_GRADIENTS, _A_NUMBER)):
        return True
    blank = len(_NAMED_WITH_A_BLANK.findall(line))
    return _TOTAL.search(line) is not None and blank == len(broken)
