"""Pairwise logistic regression in plain Python: the right line of a case against each other one. Pure.

Deterministic: a fixed start, fixed steps and no chance anywhere.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

Numbers = Mapping[str, float]
Pair = tuple[Numbers, float]
"""The right line's numbers less those of the other one, and the weight of the pair."""

_STEPS = 120


def pairs_of(right: Sequence[Numbers], wrong: Sequence[Numbers]) -> list[Pair]:
    """The pairs of one case. Each case weighs the same, however many lines it has."""
    share = 1 / max(len(right) * len(wrong), 1)
    found: list[Pair] = []
    for one in right:
        for other in wrong:
            gap = {name: one.get(name, 0.0) - other.get(name, 0.0) for name in {*one, *other}}
            found.append(({name: gap[name] for name in sorted(gap) if gap[name]}, share))
    return found


def fitted(pairs: Sequence[Pair], penalty: float) -> dict[str, float]:
    """The weights with the least logistic loss of the pairs plus half the penalty times their squares."""
    weights: dict[str, float] = defaultdict(float)
    speed: dict[str, float] = defaultdict(float)
    step = 1 / (penalty + 0.25 * max(sum(share * _square(gap) for gap, share in pairs), 1e-9))
    for turn in range(_STEPS):
        slope = {name: penalty * weight for name, weight in weights.items()}
        for gap, share in pairs:
            pull = share / (1 + math.exp(min(score(weights, gap), 500)))
            for name, amount in gap.items():
                slope[name] = slope.get(name, 0.0) - pull * amount
        # Nesterov's steps: the weights go on in the direction in which they went before.
        drag = turn / (turn + 3)
        for name, amount in slope.items():
            before = speed[name]
            speed[name] = drag * before - step * amount
            weights[name] += speed[name] + drag * (speed[name] - before)
    return dict(sorted(weights.items()))


def score(weights: Mapping[str, float], numbers: Numbers) -> float:
    """How much the weights speak for a line; the highest score is the root."""
    return sum(weights.get(name, 0.0) * amount for name, amount in numbers.items())


def _square(gap: Numbers) -> float:
    return sum(amount * amount for amount in gap.values())
