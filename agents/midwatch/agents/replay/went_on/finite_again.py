"""Finite again: a saved log whose last broken loss is followed by whole ones in lines of the same form. Pure.

A step whose loss is no number may spoil nothing: a scaler skips it, or the batch was empty. Where the weights
are broken, each later loss is, too. Where a scaler tells beside it that it skipped a step, fewer are enough.
"""

from __future__ import annotations

import re
from itertools import islice

from midwatch.agents.replay.reading.log_files import LogFile, lines_behind

_BROKEN = re.compile(r"(?i)loss\b\W{0,12}(?:nan|inf|87\.336[56]\d*)\b")  # the last is Caffe's highest
_NUMBER = re.compile(r"(?i)[-+]?(?:\d+(?:\.\d+)?(?:e[-+]?\d+)?|\b(?:nan|inf)\b)")
_DRAWN_ANEW = re.compile(r"\r+")
_SKIPPED = re.compile(r"(?i)\bskipping (?:this )?step\b|\bfound_inf\b|\breducing loss scale\b")
_BESIDE = 4  # lines above and below the broken one in which a scaler tells of it
_ENOUGH, _ENOUGH_BEHIND_A_SKIP = 3, 2
"""Different lines with a whole loss behind the last broken one."""
_READ = 4000


def is_finite_again(file: LogFile, last: int) -> bool:
    """Whether whole losses follow the broken one of the last failure line, `last`. Raises OSError."""
    lines = islice(lines_behind(file, last - 1), _READ)
    drawn = [each.strip() for line in lines for each in _DRAWN_ANEW.split(line)]
    broken = max((index for index, each in enumerate(drawn) if _BROKEN.search(each)), default=-1)
    if broken < 0:
        return False
    form = _NUMBER.sub("0", drawn[broken])
    first = max(last - 1 - _BESIDE, 0)
    beside = [*islice(lines_behind(file, first), last - 1 - first), *drawn[: broken + _BESIDE]]
    skipped = any(map(_SKIPPED.search, beside[-2 * _BESIDE :]))
    enough = _ENOUGH_BEHIND_A_SKIP if skipped else _ENOUGH
    return len({each for each in drawn[broken + 1 :] if _NUMBER.sub("0", each) == form}) >= enough
