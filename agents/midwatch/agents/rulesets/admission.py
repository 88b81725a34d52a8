"""Shell: a person's own rules are measured beside the shipped ones before they join the watch.

The verdict is the same in `midwatch rules check` and in a worker: always beside the default rules, and beside
whatever else is watched. Shipped rules are trusted, so a watch without own rules measures nothing.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from midwatch.rules.errors import LocatedError
from midwatch.rules.loader import load_bundle, shipped_files
from midwatch.rules.matching.admission import Measure, SlowRule, Speeds, admit, keeps_up, measured_by
from midwatch.rules.matching.compiler import RuleSet, compile_rules
from midwatch.rules.model import BlockKind, Rule
from midwatch.rules.prefilter.literals import Literals, required_literals
from midwatch.rules.prefilter.workloads import background

_ROUNDS = 4
_AS_FAST = 0.6
_LOOKS = 2
BESIDE = "default"
"""The preset beside which rules are measured."""
INSIST = (
    "To watch all the same set `rules.too_slow: quarantine` (without the rule) or `rules.too_slow: accept`"
    " (with it)."
)


@dataclass(frozen=True, slots=True)
class Admitted:
    """The own rules that are too slow.

    `speeds` are megabytes a second and core by workload, with all others; empty where nothing was measured.
    """

    refused: tuple[SlowRule, ...]
    speeds: Speeds


def admit_user_rules(
    shipped: Iterable[Rule], own: Iterable[Rule], measure: Measure | None = None
) -> Admitted:
    """Measure the own rules beside the shipped ones; names must differ.

    An own rule that looks for the same as a default one is a copy of it, and trusted as that is: who edits a
    copy of all packs is not measured beside a watch of nothing. Costs two compilations where all fit, and a
    few more where a rule does not. Raises RuleErrors where a pattern cannot be compiled at all.
    """
    shipped, own = tuple(shipped), tuple(own)
    usual = load_bundle(BESIDE).rules if own else ()
    known = set(map(_sought, usual))
    new = tuple(rule for rule in own if _sought(rule) not in known)
    if not new:
        compile_rules((*shipped, *own), scan=False)
        return Admitted((), {})
    taken = {rule.name for rule in (*shipped, *own)}
    copies = (rule for rule in own if _sought(rule) in known)
    beside = (*shipped, *copies, *(rule for rule in usual if rule.name not in taken))
    admission = admit(beside, new, measure or steady_measure())
    return Admitted(admission.refused, admission.speeds)


def _sought(rule: Rule) -> tuple[str, BlockKind | None, str]:
    """All of a rule that takes time."""
    return rule.pattern, rule.block, rule.stop_pattern


def admit_edit(
    shipped: Iterable[Rule], own: Iterable[Rule], in_force: Collection[str], without: Speeds | None = None
) -> Admitted:
    """As `admit_user_rules`, in a fraction of a second for what can be seen to be cheap.

    That are patterns that are `in_force` already, and those that demand a literal which lines that no rule is
    for do not hold, and beside which the automaton of all rules stays as fast. Any other is measured.
    `without`: what `speeds_without_scan` said of the rules in force a while ago.
    """
    shipped, own = tuple(shipped), tuple(own)
    new = tuple(rule for rule in own if rule.pattern not in in_force)
    known = (*shipped, *(rule for rule in own if rule.pattern in in_force))
    together = compile_rules((*shipped, *own), scan=False)
    if new and not (_never_looked_at_in_vain(new) and _is_as_fast_as(together, known, without)):
        return admit_user_rules(shipped, own)
    return Admitted((), {})


def _never_looked_at_in_vain(new: Sequence[Rule]) -> bool:
    """Whether each of the rules demands a literal that no line of the background holds."""
    text = background().lower()

    def is_absent(literals: Literals) -> bool:
        return not any(_in_bytes(literal) in text for literal in literals)

    return all(any(map(is_absent, required_literals(rule.pattern))) for rule in new)


def _in_bytes(literal: str) -> bytes:
    """A literal's units (see `midwatch.rules.prefilter.literals`) as bytes in lower case."""
    return bytes(ord(unit) % 256 for unit in literal).lower()


def _is_as_fast_as(together: RuleSet, known: Sequence[Rule], without: Speeds | None) -> bool:
    """A counted gap makes the automaton of all rules forget its states: that shows without their scan too."""
    if without is not None and keeps_up(together, _share(without, _AS_FAST), time.thread_time):
        return True
    measure = measured_by(time.thread_time)
    with_them = measure(together)
    alone = compile_rules(known, scan=False)
    without = measure(alone)
    for _ in range(_LOOKS):
        if _as_fast(with_them, without):
            return True
        # Other work can only make one of them look slower: again, one right after the other.
        with_them, without = _best(with_them, measure(together)), _best(without, measure(alone))
    return _as_fast(with_them, without)


def _as_fast(with_them: Speeds, without: Speeds) -> bool:
    return all(with_them[name] >= speed for name, speed in _share(without, _AS_FAST).items())


def _share(speeds: Speeds, share: float) -> Speeds:
    return {name: speed * share for name, speed in speeds.items()}


def _best(one: Speeds, other: Speeds) -> Speeds:
    return {name: max(speed, other[name]) for name, speed in one.items()}


def speeds_without_scan(rules: Iterable[Rule]) -> Speeds:
    """How fast the automaton of all these rules is, in a fraction of a second."""
    return measured_by(time.thread_time)(compile_rules(rules, scan=False))


def steady_measure() -> Measure:
    """By this thread's clock; the best of several rounds, since a busy machine can only look slower."""
    once = measured_by(time.thread_time)

    def measure(rule_set: RuleSet) -> Speeds:
        rounds = [once(rule_set) for _ in range(_ROUNDS)]
        return {name: max(speeds[name] for speeds in rounds) for name in rounds[0]}

    return measure


def divided(rules: Iterable[Rule]) -> tuple[tuple[Rule, ...], tuple[Rule, ...]]:
    """Shipped rules and own ones, by the file that each stands in."""
    ours, listed = shipped_places(), tuple(rules)
    return (
        tuple(rule for rule in listed if rule.location.file in ours),
        tuple(rule for rule in listed if rule.location.file not in ours),
    )


def shipped_places() -> frozenset[str]:
    """The files of which a rule that says it stands there is ours."""
    return frozenset(name for name in shipped_files() if not Path(name).exists())


def refusals(refused: Iterable[SlowRule]) -> list[LocatedError]:
    """What is told of rules that are too slow: the place, the cost, what to change, how to insist."""
    errors = [refusal.error() for refusal in refused]
    return [replace(error, remedy=f"{error.remedy}\n  {INSIST}") for error in errors]
