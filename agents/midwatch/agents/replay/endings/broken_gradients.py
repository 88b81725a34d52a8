"""Broken gradients: the last steps of a saved log have none that is finite, or are skipped for them. Pure.

A guard of XTuner and others leaves out a step whose gradients stand out. Where it leaves out all of them, the
weights have diverged, and the training learns nothing any more.
"""

from __future__ import annotations

import re

from midwatch.agents.replay.endings.cut_tracebacks import Numbered

SKIPS = "the log ends while each step is skipped, since its gradients are too large"

_GRADIENTS = re.compile(
    rb"(?i)\bgrad(?:ient)?[ _]?norm\b['\"]?(?: is| ?[:=])? *(?P<value>-?(?:nan|inf|\d[\d.]*(?:e[+-]?\d+)?))"
)
_NOT_FINITE = re.compile(rb"(?i)-?(?:nan|inf)\Z")
_SCALED = re.compile(rb"(?i)\bskipp(?:ed|ing) (?:batch|step)\b.{0,40}\bscale")
_STEPS, _LEAST_STEPS = 16, 6
"""Of so many last lines at least so many print gradients, and none of them is finite."""
_SKIPPED = re.compile(
    rb"(?i)\bgrad(?:ient)?s?[ _]?norm\b.{0,80}\b(?:exceed|above|over|larger|greater|too (?:large|high|big))"
    rb".{0,80}\bskipp?(?:ing|ed|s)?\b.{0,40}\b(?:step|update|batch)"
)
_OF_A_STEP = re.compile(rb"(?i)loss\b")
"""What the trainer prints of a step that it made or skipped. The last one may stand behind its warning."""
_LEAST_SKIPPED, _APART = 10, 6
"""Skipped steps, and lines between two of them: what the trainer prints of the step itself."""


def not_finite(lines: Numbered) -> int | None:
    """The number of the first of the last lines, if all that print gradients print none that is finite.

    A loss scaler that says it left the batch out has seen them, and takes a lower scale.
    """
    last = lines[-_STEPS:]
    printed = [(number, found["value"]) for number, line in last if (found := _GRADIENTS.search(line))]
    if len(printed) < _LEAST_STEPS or any(_NOT_FINITE.match(value) is None for _, value in printed):
        return None
    if any(_SCALED.search(line) for _, line in last):
        return None
    return printed[0][0]


def skipped_steps(lines: Numbered) -> int | None:
    """The number of the first of the last skipped steps; None if they are few, or others were made behind."""
    told = [at for at, (_, line) in enumerate(lines) if _SKIPPED.search(line)]
    if len(told) < _LEAST_SKIPPED:
        return None
    first, run = told[-1], 1
    for at in reversed(told[:-1]):
        if first - at > _APART:
            break
        first, run = at, run + 1
    behind = sum(1 for _, line in lines[told[-1] + 1 :] if _OF_A_STEP.search(line))
    return lines[first][0] if run >= _LEAST_SKIPPED and behind <= 1 else None
