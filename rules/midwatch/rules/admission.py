"""Which rules may join the watch: those that leave every kind of log fast enough to follow.

One pattern can slow all others down a hundredfold (a counted gap makes the set's automaton forget and rebuild
its states for ever) without any error. So rules are measured together before they are let in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from midwatch.rules.compiler import RuleSet, compile_rules
from midwatch.rules.errors import LocatedError
from midwatch.rules.literals import required_literals
from midwatch.rules.model import Rule
from midwatch.rules.scanner import Clock
from midwatch.rules.workloads import WORKLOADS

SLOWEST = 50.0
"""Megabytes a second and core below which no rule may push a workload that was above it."""
SMALLEST_SHARE = 0.5
"""Of the speed without the rule."""
_CHUNK = 1 << 16
_CHUNKS = 4

Speeds = Mapping[str, float]
Measure = Callable[[RuleSet], Speeds]


@dataclass(frozen=True, slots=True)
class Refusal:
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
class Admission:
    """The rules that were let in, those refused, and the speeds (megabytes a second) of those let in."""

    admitted: tuple[Rule, ...]
    refused: tuple[Refusal, ...]
    speeds: Speeds


def admit(trusted: Iterable[Rule], candidates: Iterable[Rule], measure: Measure) -> Admission:
    """Let in as many candidates beside the trusted rules as the speed allows, the earlier ones first.

    Where all fit together two sets are compiled and measured; else halves are tried down to the single rule
    that does not fit. Raises RuleErrors where a pattern cannot be compiled at all.
    """
    return _Gatekeeper(tuple(trusted), measure).admit(tuple(candidates))


def measured_by(clock: Clock, workloads: Mapping[str, Callable[[int], bytes]] = WORKLOADS) -> Measure:
    """A measure by a clock that gives seconds of this thread's work (`time.thread_time`).

    Each workload is cut into chunks; the first warms up, the best of the others counts. All differ, so an
    automaton that never settles cannot hide behind what it has already seen.
    """
    texts = {
        name: [text[i : i + _CHUNK] for i in range(0, _CHUNK * _CHUNKS, _CHUNK)]
        for name, text in ((name, make(_CHUNK * _CHUNKS)) for name, make in workloads.items())
    }

    def measure(rule_set: RuleSet) -> Speeds:
        speeds: dict[str, float] = {}
        for name, chunks in texts.items():
            rule_set.match_chunk(chunks[0])
            best = float("inf")
            for chunk in chunks[1:]:
                begin = clock()
                rule_set.match_chunk(chunk)
                best = min(best, clock() - begin)
            speeds[name] = _CHUNK / 1e6 / max(best, 1e-9)
        return speeds

    return measure


def advice(pattern: str) -> str:
    """What to change in a pattern that is too dear."""
    if not required_literals(pattern):
        return "Demand three or more fixed characters in a row, so that most lines need no look at all."
    if "{" in pattern:
        return "Replace counted repetitions such as `.{10,90}` by `.*`, or anchor the pattern with `^`."
    return "Make the fixed part of the pattern longer or rarer, or split the rule."


class _Gatekeeper:
    def __init__(self, trusted: tuple[Rule, ...], measure: Measure) -> None:
        self.inside = list(trusted)
        self.measure = measure
        self.speeds = measure(compile_rules(trusted))
        self.refused: list[Refusal] = []

    def admit(self, candidates: tuple[Rule, ...]) -> Admission:
        first = len(self.inside)
        self.let_in(candidates)
        return Admission(tuple(self.inside[first:]), tuple(self.refused), self.speeds)

    def let_in(self, group: Sequence[Rule]) -> None:
        if not group:
            return
        speeds = self.measure(compile_rules((*self.inside, *group)))
        slowed = self.slowed(speeds)
        if slowed is None:
            self.inside.extend(group)
            self.speeds = speeds
        elif len(group) == 1:
            self.refused.append(Refusal(group[0], slowed, speeds[slowed], self.speeds[slowed]))
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
