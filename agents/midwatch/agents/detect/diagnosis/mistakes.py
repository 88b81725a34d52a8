"""Mistakes: exceptions that each start of the same code meets again. Pure."""

from __future__ import annotations

import re

MISTAKE = re.compile(
    r"\b(?:Type|Attribute|Name|UnboundLocal|Key|Index|Lookup|Value|Assertion|NotImplemented|ZeroDivision|Syntax"
    r"|Indentation|Tab|Recursion|Import|ModuleNotFound|UnicodeDecode|UnicodeEncode|FileNotFound|FileExists"
    r"|NotADirectory|IsADirectory|Permission)Error\b"
)
"""Python's own exceptions for a mistake in code or data, which each start meets again."""
