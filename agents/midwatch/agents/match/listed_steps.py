"""Listed steps: a line with the records of many steps sums up a training, and is no step itself. Pure."""

from __future__ import annotations

import re
from itertools import islice

from midwatch.rules.matching.hits import Row
from midwatch.rules.model import Role

LONG = 2048
"""Bytes: the records of many steps make a longer line."""
_STEP = re.compile(rb"[\"'](?:global_|train_|trainer/)?(?:step|iter|iteration)[\"']: ?\d")
_MANY = 4


def lists_steps(row: Row) -> bool:
    """Whether the line shows progress, but of many steps. AlgoPerf prints such a list at the end."""
    compiled, chunk, start, end, *_ = row
    if compiled.rule.role is not Role.PROGRESS:
        return False
    return sum(1 for _ in islice(_STEP.finditer(chunk, start, end), _MANY)) == _MANY
