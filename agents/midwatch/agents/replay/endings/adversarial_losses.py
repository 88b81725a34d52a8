"""Adversarial losses: two networks train against each other, and each one's gain is the other's loss. Pure.

So the loss of either rises and falls while both learn (Goodfellow and others, arXiv 1406.2661). Its height
alone is no spike.
"""

from __future__ import annotations

import re

from midwatch.agents.replay.reading.log_files import LogFile, line_of

_OF_ONE = re.compile(r"(?i)(?<![a-z])(?:(?:g|gen|generator)[_ ]loss|loss_g)(?![a-z])")
_OF_OTHER = re.compile(r"(?i)(?<![a-z])(?:(?:d|disc|discriminator)[_ ]loss|loss_d)(?![a-z])")
_DIVERGED = 1000.0
"""From here on it has left what such losses reach while both learn."""


def is_of_adversaries(file: LogFile, number: int, loss: float | None) -> bool:
    """Whether line `number`, a step's, prints the losses of both, and none is huge. Raises OSError."""
    if loss is None or abs(loss) >= _DIVERGED:
        return False
    line = line_of(file, number)
    return _OF_ONE.search(line) is not None and _OF_OTHER.search(line) is not None
