"""Which rules may join the watch: those that leave every kind of log fast enough to follow.

One pattern can slow all others down a hundredfold (a counted gap makes the set's automaton forget and rebuild
its states for ever) without any error. So rules are measured together before they are let in.
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
from midwatch.rules.prefilter.workloads import WORKLOADS

SLOWEST = 50.0
"""Megabytes a second and core below which no rule may push a workload that was above it."""
SMALLEST_SHARE = 0.5
"""Of the speed without the rule."""
_CHUNK = 1 << 16
_CHUNKS = 4

_AGAIN = 3
_HOPELESS = 0.15
"""Of the speed without the rules: what other work does not explain."""

Speeds = Mapping[str, float]
Measure = Callable[[RuleSet], Speeds]


@dataclass(frozen=True, slots=True)
class SlowRule:
    """A rule that is too dear: on which workload, and the megabytes a second with and without it."""

    rule: Rule
    workload: str
    speed: float
    speed_without: float

    def error(self) -> LocatedError:
        """The refusal as a mistake in the rule's file."""
        what = (
            f"rule {self.rule.name!r} slows all rules down: {self.speed:.0f} MB/s on {self.workload} lines,"
            f" {self.speed_without:.0f} without it"
        )
        return LocatedError(self.rule.location, what, advice(self.rule.pattern))


@dataclass(frozen=True, slots=True)
class RuleAdmission:
    """The rules that were let in, those refused, and the speeds (megabytes a second) of those let in."""

    admitted: tuple[Rule, ...]
    refused: tuple[SlowRule, ...]
    speeds: Speeds


def admit(trusted: Iterable[Rule], candidates: Iterable[Rule], measure: Measure) -> RuleAdmission:
    """Let in as many candidates beside the trusted rules as the speed allows, the earlier ones first.

    Where all fit together two sets are compiled and measured; else halves are tried down to the single rule
    that does not fit. What looks too slow is measured again, side by side with the set without it, before it
    is believed. Raises RuleErrors where a pattern cannot be compiled at all.
    """
    return _Gatekeeper(tuple(trusted), measure).admit(tuple(candidates))


def measured_by(clock: Clock, workloads: Mapping[str, Callable[[int], bytes]] = WORKLOADS) -> Measure:
    """A measure by a clock that gives seconds of this thread's work (`time.thread_time`).

    Each workload is cut into chunks; the first warms up, the best of the others counts. All differ, so an
    automaton that never settles cannot hide behind what it has already seen.
    """
    texts = {name: _chunks(make) for name, make in workloads.items()}

    def measure(rule_set: RuleSet) -> Speeds:
        return {name: max(_speeds(rule_set, chunks, clock)) for name, chunks in texts.items()}

    return measure


def keeps_up(rule_set: RuleSet, asked: Speeds, clock: Clock) -> bool:
    """Whether the set is as fast as asked on each of the usual workloads, told as soon as can be."""
    return all(_reaches(rule_set, speed, _chunks(WORKLOADS[name]), clock) for name, speed in asked.items())


def advice(pattern: str) -> str:
    """What to change in a pattern that is too dear."""
    if not required_literals(pattern):
        return "Demand three or more fixed characters in a row, so that most lines need no look at all."
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
    """All that a worker does with a chunk's text."""
    rule_set.match_chunk(chunk)
    rule_set.match_blocks(chunk)
    rule_set.match_stops(chunk)


def _best(one: Speeds, other: Speeds) -> Speeds:
    """Other work can only make rules look slower."""
    return {name: max(speed, other[name]) for name, speed in one.items()}


class _Gatekeeper:
    def __init__(self, trusted: tuple[Rule, ...], measure: Measure) -> None:
        self.inside = trusted
        self.measure = measure
        self.compiled = compile_rules(trusted)
        self.speeds = measure(self.compiled)
        self.refused: list[SlowRule] = []

    def admit(self, candidates: tuple[Rule, ...]) -> RuleAdmission:
        first = len(self.inside)
        self.let_in(candidates)
        return RuleAdmission(self.inside[first:], tuple(self.refused), self.speeds)

    def let_in(self, group: Sequence[Rule]) -> None:
        if not group:
            return
        joined = compile_rules((*self.inside, *group))
        speeds = self.measure(joined)
        slowed = self.slowed(speeds)
        for _ in range(_AGAIN):
            if slowed is None or speeds[slowed] < self.speeds[slowed] * _HOPELESS:
                break
            # Other work may have begun between the two measurements: both again, one right after the other.
            self.speeds = _best(self.speeds, self.measure(self.compiled))
            speeds = _best(speeds, self.measure(joined))
            slowed = self.slowed(speeds)
        if slowed is None:
            self.inside = (*self.inside, *group)
            self.compiled, self.speeds = joined, speeds
        elif len(group) == 1:
            self.refused.append(SlowRule(group[0], slowed, speeds[slowed], self.speeds[slowed]))
        else:
            middle = len(group) // 2
            self.let_in(group[:middle])
            self.let_in(group[middle:])

    def slowed(self, speeds: Speeds) -> str | None:
        """The workload that suffers too much, or None."""
        for name, before in self.speeds.items():
            if speeds[name] < before * SMALLEST_SHARE or speeds[name] < min(SLOWEST, before * 0.9):
                return name
        return None
