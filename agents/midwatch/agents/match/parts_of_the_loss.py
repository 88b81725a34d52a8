"""A part of the loss that is no number, in a record whose loss and gradients are numbers. Pure.

A mean over tokens of one kind is nan where a batch holds none of them. Records of verl show such parts
beside the loss that was trained on. A nan in that loss would be one in the norm of its gradients, too.
"""

from __future__ import annotations

import re

_NOT_A_NUMBER = re.compile(rb"(?P<name>[\w/.-]{0,64})loss(?P<rest>_\w+)?['\"]?\s*[:=]\s*(?i:-?(?:nan|inf)\b)")
_A_NUMBER = re.compile(rb"loss['\"]?\s*[:=]\s*-?\d")
_GRADIENTS = re.compile(rb"grad_?norm['\"]?\s*[:=]\s*\d")


def is_only_a_part(line: bytes) -> bool:
    """Whether only named parts of the loss are no numbers in the line; its gradients and another loss are."""
    broken = list(_NOT_A_NUMBER.finditer(line))
    named = all(found["name"].rpartition(b"/")[2] or found["rest"] for found in broken)
    return bool(broken) and named and all(what.search(line) for what in (_GRADIENTS, _A_NUMBER))
