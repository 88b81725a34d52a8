"""Shell: a person's own rules are measured beside the shipped ones before they join the watch.

The verdict is the same in `midwatch rules check` and in a worker: always beside the default rules, and beside
whatever else is watched. Shipped rules are trusted, so a watch without own rules measures nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from midwatch.rules.admission import Measure, Refusal, Speeds, admit, measured_by
from midwatch.rules.compiler import RuleSet, compile_rules, content_hash
from midwatch.rules.errors import LocatedError
from midwatch.rules.loader import load_bundle, shipped_files
from midwatch.rules.model import Rule

_ROUNDS = 4
BESIDE = "default"
"""The preset beside which rules are measured."""
INSIST = (
    "To watch all the same set `rules.too_slow: quarantine` (without the rule) or `rules.too_slow: accept`"
    " (with it)."
)


@dataclass(frozen=True, slots=True)
class Admitted:
    """The compiled rules that may be watched, shipped ones first, and the own rules that are too dear.

    `speeds` are megabytes a second and core by workload, with all of them; empty where nothing was measured.
    """

    rules: RuleSet
    refused: tuple[Refusal, ...]
    speeds: Speeds


def admit_own(shipped: Iterable[Rule], own: Iterable[Rule], measure: Measure | None = None) -> Admitted:
    """Compile all, but for the own rules that would slow the others down; names must differ.

    Costs a second compilation where all fit, and a few more where a rule does not. Raises RuleErrors where
    a pattern cannot be compiled at all.
    """
    shipped, own = tuple(shipped), tuple(own)
    if not own:
        return Admitted(compile_rules(shipped), (), {})
    taken = {rule.name for rule in (*shipped, *own)}
    beside = (*shipped, *(rule for rule in load_bundle(BESIDE).rules if rule.name not in taken))
    remembered = _Remembered(measure or steady_measure())
    admission = admit(beside, own, remembered)
    kept = (*shipped, *admission.admitted)
    compiled = remembered.sets.get(content_hash(kept)) or compile_rules(kept)
    return Admitted(compiled, admission.refused, admission.speeds)


def steady_measure() -> Measure:
    """By this thread's clock; the best of several rounds, since a busy machine can only look slower."""
    once = measured_by(time.thread_time)

    def measure(rule_set: RuleSet) -> Speeds:
        rounds = [once(rule_set) for _ in range(_ROUNDS)]
        return {name: max(speeds[name] for speeds in rounds) for name in rounds[0]}

    return measure


def divided(rules: Iterable[Rule]) -> tuple[tuple[Rule, ...], tuple[Rule, ...]]:
    """Shipped rules and own ones, by the file that each stands in."""
    ours = {name for name in shipped_files() if not Path(name).exists()}
    listed = tuple(rules)
    return (
        tuple(rule for rule in listed if rule.location.file in ours),
        tuple(rule for rule in listed if rule.location.file not in ours),
    )


def refusals(refused: Iterable[Refusal]) -> list[LocatedError]:
    """What is told of rules that are too dear: the place, the cost, what to change, how to insist."""
    errors = [refusal.error() for refusal in refused]
    return [replace(error, remedy=f"{error.remedy}\n  {INSIST}") for error in errors]


class _Remembered:
    """A measure that keeps the sets it measured, so that none is compiled twice."""

    def __init__(self, measure: Measure) -> None:
        self.measure = measure
        self.sets: dict[str, RuleSet] = {}

    def __call__(self, rule_set: RuleSet) -> Speeds:
        self.sets[rule_set.content_hash] = rule_set
        return self.measure(rule_set)
