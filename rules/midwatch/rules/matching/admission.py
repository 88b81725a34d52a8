"""Admission: it lets in the rules with which every kind of log is still matched fast enough.

One slow pattern can slow all others down a hundredfold, without any error. For example, a counted gap makes
the set's automaton drop and rebuild its states for ever. So admission measures rules together before it lets
them in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from midwatch.rules.errors import LocatedError
from midwatch.rules.matching.compiler import RuleSet, compile_rules
from midwatch.rules.matching.scanner import Clock
from midwatch.rules.model import Rule
from midwatch.rules.prefilter.literals import required_literals
from midwatch.rules.prefilter.plan import PrefilterPlan
from midwatch.rules.prefilter.workloads import WORKLOADS

SLOWEST = 50.0
"""Megabytes a second on one core: no rule may push a workload from above this speed to below it."""
SMALLEST_SHARE = 0.5
"""The smallest share of the speed without a rule that must remain with the rule."""
_CHUNK = 1 << 16
_CHUNKS = 4

_AGAIN = 3
_HOPELESS = 0.15
"""A share of the speed without the rules that other work on the machine cannot explain."""

Speeds = Mapping[str, float]
Measure = Callable[[RuleSet], Speeds]


@dataclass(frozen=True, slots=True)
class SlowRule:
    """A rule that is too slow: the workload, and its megabytes a second with and without the rule."""

    rule: Rule
    workload: str
    speed: float
    speed_without: float

    def error(self) -> LocatedError:
        """The refusal as a located mistake in the rule's file."""
        what = (
            f"rule {self.rule.name!r} slows all rules down: {self.speed:.0f} MB/s on {self.workload} lines,"
            f" {self.speed_without:.0f} without it"
        )
        return LocatedError(self.rule.location, what, advice(self.rule.pattern))


@dataclass(frozen=True, slots=True)
class RuleAdmission:
    """The admitted rules, the refused ones, and the speeds (megabytes a second) with the admitted ones."""

    admitted: tuple[Rule, ...]
    refused: tuple[SlowRule, ...]
    speeds: Speeds


def admit(
    trusted: Iterable[Rule],
    candidates: Iterable[Rule],
    measure: Measure,
    known: PrefilterPlan | None = None,
) -> RuleAdmission:
    """Admit as many candidates beside the trusted rules as the speed allows, earlier candidates first.

    If all candidates fit, one scan is planned for the trusted rules, and a small one for the candidates
    beside it. `known` is a finished plan: if it belongs to the trusted rules, theirs is not made. Otherwise
    halves are tried, down to the single rule that does not fit. A set that looks too slow is planned as a
    whole, and measured again, together with the set without it. Raises RuleErrors if a pattern does not
    compile.
    """
    return _Gatekeeper(tuple(trusted), measure, known).admit(tuple(candidates))


def measured_by(clock: Clock, workloads: Mapping[str, Callable[[int], bytes]] = WORKLOADS) -> Measure:
    """A measure by a clock that gives the seconds of this thread's work (`time.thread_time`).

    Each workload is cut into chunks. The first chunk warms up, and the best of the others counts. All chunks
    differ, so an automaton that rebuilds its states for ever shows its cost.
    """
    texts = {name: _chunks(make) for name, make in workloads.items()}

    def measure(rule_set: RuleSet) -> Speeds:
        return {name: max(_speeds(rule_set, chunks, clock)) for name, chunks in texts.items()}

    return measure


def keeps_up(rule_set: RuleSet, required: Speeds, clock: Clock) -> bool:
    """Whether the set reaches the required speed on each of these workloads; stops once it knows."""
    return all(_reaches(rule_set, speed, _chunks(WORKLOADS[name]), clock) for name, speed in required.items())


def advice(pattern: str) -> str:
    """How to change a pattern that is too slow."""
    if not required_literals(pattern):
        return (
            "Put three or more fixed characters in a row into the pattern, so that most lines need no search."
        )
    if "{" in pattern:
        return "Replace counted repetitions such as `.{10,90}` by `.*`, or anchor the pattern with `^`."
    return "Make the fixed part of the pattern longer or rarer, or split the rule."


@cache
def _chunks(make: Callable[[int], bytes]) -> tuple[bytes, ...]:
    text = make(_CHUNK * _CHUNKS)
    return tuple(text[i : i + _CHUNK] for i in range(0, _CHUNK * _CHUNKS, _CHUNK))


def _reaches(rule_set: RuleSet, speed: float, chunks: Sequence[bytes], clock: Clock) -> bool:
    return any(reached >= speed for reached in _speeds(rule_set, chunks, clock))


def _speeds(rule_set: RuleSet, chunks: Sequence[bytes], clock: Clock) -> Iterator[float]:
    _match(rule_set, chunks[0])
    for chunk in chunks[1:]:
        begin = clock()
        _match(rule_set, chunk)
        yield _CHUNK / 1e6 / max(clock() - begin, 1e-9)


def _match(rule_set: RuleSet, chunk: bytes) -> None:
    """The matching that a worker does for each chunk."""
    rule_set.match_chunk(chunk)
    rule_set.match_blocks(chunk)
    rule_set.match_stops(chunk)


def _best(first: Speeds, second: Speeds) -> Speeds:
    """The higher speed of each workload: other work on the machine only makes rules look slower."""
    return {name: max(speed, second[name]) for name, speed in first.items()}


class _Gatekeeper:
    def __init__(self, trusted: tuple[Rule, ...], measure: Measure, known: PrefilterPlan | None) -> None:
        self.inside = trusted
        self.measure = measure
        self.compiled = compile_rules(trusted, tested=False, known=known)
        self.speeds = measure(self.compiled)
        self.refused: list[SlowRule] = []

    def admit(self, candidates: tuple[Rule, ...]) -> RuleAdmission:
        first = len(self.inside)
        self.try_group(candidates)
        return RuleAdmission(self.inside[first:], tuple(self.refused), self.speeds)

    def try_group(self, group: Sequence[Rule]) -> None:
        if not group:
            return
        joined = self.compiled.with_rules(group)
        speeds, slowed = self.measured(joined)
        if slowed is not None and speeds[slowed] >= self.speeds[slowed] * _HOPELESS:
            # A scan that is planned for all of them together may be fast enough.
            joined = compile_rules((*self.inside, *group))
            speeds, slowed = self.measured(joined)
        if slowed is None:
            self.inside = (*self.inside, *group)
            self.compiled, self.speeds = joined, speeds
        elif len(group) == 1:
            self.refused.append(SlowRule(group[0], slowed, speeds[slowed], self.speeds[slowed]))
        else:
            middle = len(group) // 2
            self.try_group(group[:middle])
            self.try_group(group[middle:])

    def measured(self, joined: RuleSet) -> tuple[Speeds, str | None]:
        """The speeds of a set, and the workload that it makes too slow, if there is one."""
        speeds = self.measure(joined)
        slowed = self.slowed(speeds)
        for _ in range(_AGAIN):
            if slowed is None or speeds[slowed] < self.speeds[slowed] * _HOPELESS:
                break
            # Other work may have begun between the two measurements: repeat both, right after each other.
            self.speeds = _best(self.speeds, self.measure(self.compiled))
            speeds = _best(speeds, self.measure(joined))
            slowed = self.slowed(speeds)
        return speeds, slowed

    def slowed(self, speeds: Speeds) -> str | None:
        """The workload that becomes too slow, or None."""
        for name, before in self.speeds.items():
            if speeds[name] < before * SMALLEST_SHARE or speeds[name] < min(SLOWEST, before * 0.9):
                return name
        return None
