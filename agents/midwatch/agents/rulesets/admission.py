"""Shell: measures user rules together with the shipped ones before the watch uses them.

The result is the same in `midwatch rules check` and in a worker. Both measure beside the default rules and
beside all other rules in use. Shipped rules are trusted, so a watch without user rules measures nothing.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from midwatch.rules.errors import LocatedError
from midwatch.rules.loader import load_bundle, shipped_files, shipped_plan
from midwatch.rules.matching.admission import Measure, SlowRule, Speeds, admit, keeps_up, measured_by
from midwatch.rules.matching.compiler import RuleSet, compile_rules
from midwatch.rules.model import BlockKind, Rule
from midwatch.rules.prefilter.literals import Literals, required_literals
from midwatch.rules.prefilter.workloads import background

_ROUNDS = 4
_FAST_ENOUGH = 0.6
_REPEATS = 2
BESIDE = "default"
"""The preset beside which rules are measured."""
INSIST = (
    "To go on nevertheless set `rules.too_slow: quarantine` (without the rule) or `rules.too_slow: accept`"
    " (with it)."
)


@dataclass(frozen=True, slots=True)
class Admitted:
    """The user rules that are too slow.

    `speeds` are megabytes a second and core by workload, of all rules together. It is empty where nothing
    was measured.
    """

    refused: tuple[SlowRule, ...]
    speeds: Speeds


def admit_user_rules(
    shipped: Iterable[Rule], user_rules: Iterable[Rule], measure: Measure | None = None
) -> Admitted:
    """Measures the user rules beside the shipped ones. All names must differ.

    A user rule that searches for the same text as a default rule counts as a copy of it, and is trusted.
    So an edited copy of all packs is still measured beside the default rules. The plan of these is shipped.
    Where the preset is another one, or a rule is too slow, a scan is planned, or a few. Raises RuleErrors
    where a pattern does not compile.
    """
    shipped, user_rules = tuple(shipped), tuple(user_rules)
    defaults = load_bundle(BESIDE).rules if user_rules else ()
    default_keys = set(map(_search_key, defaults))
    new = tuple(rule for rule in user_rules if _search_key(rule) not in default_keys)
    if not new:
        compile_rules((*shipped, *user_rules), scan=False)
        return Admitted((), {})
    copies = (rule for rule in user_rules if _search_key(rule) in default_keys)
    others = {rule.name: rule for rule in (*shipped, *copies)}
    left_out = {rule.name for rule in new}
    first = [others.pop(rule.name, rule) for rule in defaults if rule.name not in left_out]
    trusted = (*first, *others.values())  # in the order for which a plan is shipped
    admission = admit(trusted, new, measure or steady_measure(), shipped_plan())
    return Admitted(admission.refused, admission.speeds)


def _search_key(rule: Rule) -> tuple[str, BlockKind | None, str]:
    """The parts of a rule that cost time."""
    return rule.pattern, rule.block, rule.stop_pattern


def admit_edit(
    shipped: Iterable[Rule],
    user_rules: Iterable[Rule],
    in_force: Collection[str],
    without: Speeds | None = None,
) -> Admitted:
    """As `admit_user_rules`, but in a fraction of a second where all rules are plainly fast.

    A rule is plainly fast if its pattern is `in_force` already. Any other must require a literal that lines
    of the background do not hold. And the automaton of all rules must stay as fast. Else all is measured.
    `without`: an earlier result of `speeds_without_scan` for the rules in force.
    """
    shipped, user_rules = tuple(shipped), tuple(user_rules)
    new = tuple(rule for rule in user_rules if rule.pattern not in in_force)
    in_use = (*shipped, *(rule for rule in user_rules if rule.pattern in in_force))
    together = compile_rules((*shipped, *user_rules), scan=False)
    if new and not (_require_rare_literals(new) and _is_as_fast_as(together, in_use, without)):
        return admit_user_rules(shipped, user_rules)
    return Admitted((), {})


def _require_rare_literals(new: Sequence[Rule]) -> bool:
    """Whether each rule requires a literal that no line of the background holds."""
    text = background().lower()

    def is_absent(literals: Literals) -> bool:
        return not any(_in_bytes(literal) in text for literal in literals)

    return all(any(map(is_absent, required_literals(rule.pattern))) for rule in new)


def _in_bytes(literal: str) -> bytes:
    """A literal's units (see `midwatch.rules.prefilter.literals`) as bytes in lower case."""
    return bytes(ord(unit) % 256 for unit in literal).lower()


def _is_as_fast_as(together: RuleSet, in_use: Sequence[Rule], without: Speeds | None) -> bool:
    """Whether the automaton stays fast: a counted gap makes it forget states, even without the scan."""
    if without is not None and keeps_up(together, _share(without, _FAST_ENOUGH), time.thread_time):
        return True
    measure = measured_by(time.thread_time)
    with_them = measure(together)
    alone = compile_rules(in_use, scan=False)
    without = measure(alone)
    for _ in range(_REPEATS):
        if _as_fast(with_them, without):
            return True
        # Other work on the machine can only lower a speed, so both are measured again, one after the other.
        with_them, without = _best(with_them, measure(together)), _best(without, measure(alone))
    return _as_fast(with_them, without)


def _as_fast(with_them: Speeds, without: Speeds) -> bool:
    return all(with_them[name] >= speed for name, speed in _share(without, _FAST_ENOUGH).items())


def _share(speeds: Speeds, share: float) -> Speeds:
    return {name: speed * share for name, speed in speeds.items()}


def _best(first: Speeds, second: Speeds) -> Speeds:
    return {name: max(speed, second[name]) for name, speed in first.items()}


def speeds_without_scan(rules: Iterable[Rule]) -> Speeds:
    """The speeds of the automaton of all these rules. It takes a fraction of a second."""
    return measured_by(time.thread_time)(compile_rules(rules, scan=False))


def steady_measure() -> Measure:
    """Measures by this thread's clock, the best of several rounds: a busy machine only looks slower."""
    once = measured_by(time.thread_time)

    def measure(rule_set: RuleSet) -> Speeds:
        rounds = [once(rule_set) for _ in range(_ROUNDS)]
        return {name: max(speeds[name] for speeds in rounds) for name in rounds[0]}

    return measure


def divided(rules: Iterable[Rule]) -> tuple[tuple[Rule, ...], tuple[Rule, ...]]:
    """Shipped rules and user rules, by the file of each."""
    shipped, listed = shipped_places(), tuple(rules)
    return (
        tuple(rule for rule in listed if rule.location.file in shipped),
        tuple(rule for rule in listed if rule.location.file not in shipped),
    )


def shipped_places() -> frozenset[str]:
    """The names of shipped files, except those that name a user file too."""
    return frozenset(name for name in shipped_files() if not Path(name).exists())


def refusals(refused: Iterable[SlowRule]) -> list[LocatedError]:
    """An error for each rule that is too slow: its place, its cost, and what to change or to set."""
    errors = [refusal.error() for refusal in refused]
    return [replace(error, remedy=f"{error.remedy}\n  {INSIST}") for error in errors]
