"""A success that is none: the program's last words, though it had just given up its last try. Pure.

The trainers of visual trackers (PyTracking and its children, STARK, OSTrack, SeqTrack) catch what ends an
epoch, and say that they start again. They print that the training is finished even where no try is left.
"""

from __future__ import annotations

from midwatch.agents.match.lines_above import lines_above
from midwatch.streams.lines.launcher_prefix import front

_STARTS_AGAIN = b"Restarting training from last epoch"


def is_empty_success(text: bytes, start: int, end: int) -> bool:
    """Whether right above the line from `start` to `end` the program only said that it starts again."""
    speaker = text[start : start + front(text[start:end])]
    above = next(lines_above(text, start, speaker), None)
    return above is not None and above[1].strip().startswith(_STARTS_AGAIN)
