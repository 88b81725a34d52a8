"""Filtered losses: a trainer prints 0 in place of a loss that is no number, to the end of a saved log. Pure.

The Trainer of transformers does so unless `logging_nan_inf_filter` is off. Its gradients, or the rewards and
probabilities of preferences, stand in the same record, and nothing filters them. Such a training says that it
is done, as one that went well does.
"""

from __future__ import annotations

import re
from itertools import takewhile

from midwatch.agents.replay.endings.cut_tracebacks import Numbered

_LEAST = 2
"""Records: a loss may miss one number and come back."""
_RECORD = re.compile(rb"['\"]loss['\"]: ?['\"]?[-+.\w]+")
_NOTHING = re.compile(rb"['\"]loss['\"]: ?['\"]?0(?:\.0+)?['\"]?[,}]")
_NO_NUMBER = re.compile(
    rb"['\"](?:grad_norm|rewards/(?:chosen|rejected|margins)|logps/\w+)['\"]: ?['\"]?(?i:nan)\b"
)


def filtered_loss(lines: Numbered) -> int | None:
    """The number of the first of the last records with such a loss; None if the last ones have another."""
    records = [(number, line) for number, line in reversed(lines) if _RECORD.search(line)]
    broken = list(takewhile(lambda each: _NOTHING.search(each[1]) and _NO_NUMBER.search(each[1]), records))
    return broken[-1][0] if len(broken) >= _LEAST else None
