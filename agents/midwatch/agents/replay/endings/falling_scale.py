"""The falling loss scale: a saved log ends while a loss scaler halves its scale at each step. Pure.

Scalers of DeepSpeed, apex and fairseq begin high and fall until the gradients are finite. That ends far above
a scale of 4. Below it even the smallest gradients are not finite, so the weights or the data are broken.
"""

from __future__ import annotations

import re

from midwatch.agents.replay.endings.cut_tracebacks import Numbered

FALLS = "the log ends while its loss scale falls at each step"

_REDUCED = re.compile(
    rb"(?:\breducing loss scale to|\bAttempted loss scale: [\d.]+, reducing to|\bsetting loss scale to:?)"
    rb" +(\d+(?:\.\d+)?)(?![\d.e])"
)
_LEAST = 5
"""Halvings without a step that was made between."""
_LOWEST = 4.0
_APART, _BEHIND = 8, 8
"""Lines between two of them, and behind the last one."""


def falling_scale(lines: Numbered) -> int | None:
    """The number of the line with the lowest scale of such a fall; None if the lines end otherwise."""
    told = [(at, float(found[1])) for at, (_, line) in enumerate(lines) if (found := _REDUCED.search(line))]
    if not told or told[-1][1] > _LOWEST or len(lines) - 1 - told[-1][0] > _BEHIND:
        return None
    halvings, (last, scale) = 1, told[-1]
    for at, higher in reversed(told[:-1]):
        if last - at > _APART or higher not in (scale, 2 * scale):  # other ranks repeat it
            break
        halvings += higher != scale
        last, scale = at, higher
    return lines[told[-1][0]][0] if halvings >= _LEAST else None
