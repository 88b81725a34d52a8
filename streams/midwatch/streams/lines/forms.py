"""Forms of lines: lines of one form differ in their digits only. Pure.

A process prints few forms, so what holds for a form is looked up and not found anew for each line. That needs
patterns that treat all digits alike.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import methodcaller

LONGEST_FORM = 1024
"""Bytes of a line above which remembering its form costs more than it saves."""

_ONE_DIGIT = bytes.maketrans(b"123456789", b"000000000")


form_of: Callable[[bytes], bytes] = methodcaller("translate", _ONE_DIGIT)
"""The line with each digit replaced by 0. Its length and all its other bytes stay."""
