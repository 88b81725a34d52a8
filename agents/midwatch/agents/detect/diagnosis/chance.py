"""The chance that the same start passes, from counts of ends like this one. Pure.

A class of ends is the error type, what the rule claims about transience, and whether the attempt made a step.
Few ends are of one class, so each class leans on a wider one. The widest is all ends. Then come those with
the same claim and steps, of these the same family, and of these the same type. The estimate of the wider
class counts like `STRENGTH` further ends. The user's own restarts lean on the labelled ends in the same way.

Labels come from single excerpts, so no labelled end says how a second restart after the same end went.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from midwatch.agents.rulesets.outcomes import Counts, OwnOutcomes, read_counts
from midwatch.streams.records import Chance, Verdict
from midwatch.streams.records.error_types import family

STRENGTH = 4.0
"""How many ends the estimate of the wider class counts for."""
ENOUGH = 5
"""The sentence names the narrowest class with so many labelled ends."""
FILE = "labelled_ends.json"
_EVEN = 0.5  # where nothing was counted
_CLAIMS = {True: "transient", False: "permanent", None: "unknown"}
_MEANT = {name: claim for claim, name in _CLAIMS.items()}
_SAID = {True: "transient", False: "permanent", None: "unknown whether transient"}


@dataclass(frozen=True, slots=True)
class EndClass:
    """A class of ends. `transient`: what the rule of the root claims. `stepped`: the attempt made a step."""

    error_type: str
    transient: bool | None
    stepped: bool

    @property
    def name(self) -> str:
        """Its name in a file of counts."""
        return f"{self.error_type}/{_CLAIMS[self.transient]}/{'stepped' if self.stepped else 'unstepped'}"


@dataclass(frozen=True, slots=True)
class Counted:
    """How many of `of` ends of the class passed, or were judged worth a restart."""

    end: EndClass
    passed: int
    of: int


def class_named(name: str) -> EndClass:
    """The class of that name in a file of counts."""
    error_type, claim, steps = name.rsplit("/", 2)
    return EndClass(error_type, _MEANT[claim], steps == "stepped")


def counted(counts: Counts) -> tuple[Counted, ...]:
    """The counts by class."""
    return tuple(Counted(class_named(name), passed, of) for name, (passed, of) in counts.items())


@cache
def shipped() -> tuple[Counted, ...]:
    """The labelled ends that ship with midwatch."""
    file = resources.files("midwatch.agents.detect.diagnosis") / FILE
    return counted(read_counts(file.read_bytes(), FILE))


def end_class(verdict: Verdict, *, stepped: bool) -> EndClass:
    """The class of the end that the verdict is about."""
    return EndClass(verdict.error_type, verdict.transient, stepped)


def chance_of(end: EndClass, labelled: Sequence[Counted], own: OwnOutcomes | None = None) -> Chance:
    """The chance of this end by the labelled ends, then by the user's own restarts."""
    levels = list(_levels(end, labelled))
    share = _EVEN
    for _, passed, of in levels:
        share = smoothed(share, passed, of)
    like, worth, of = next((level for level in reversed(levels) if level[2] >= ENOUGH), levels[0])
    own_passed, own_of = _own(end, own) if own else (0, 0)
    return Chance(
        share=round(smoothed(share, own_passed, own_of), 4),
        worth=worth,
        of=of,
        like=like,
        stepped=end.stepped,
        own_passed=own_passed,
        own=own_of,
        outcomes=own.hash if own else "",
    )


def smoothed(prior: float, passed: float, of: float) -> float:
    """The share of `passed` among `of`, drawn towards `prior` as if by `STRENGTH` further ends."""
    return (STRENGTH * prior + passed) / (STRENGTH + of)


def _levels(end: EndClass, counts: Sequence[Counted]) -> Iterator[tuple[str, int, int]]:
    """From the widest class to the narrowest: what its ends have in common, and its counts."""
    structure = f"{_SAID[end.transient]}, {'after a step' if end.stepped else 'before any step'}"
    alike = [c for c in counts if (c.end.transient, c.end.stepped) == (end.transient, end.stepped)]
    kin = family(end.error_type)
    yield "all failures", *_total(counts)
    yield structure, *_total(alike)
    if kin != "none":
        yield f"{kin}, {structure}", *_total(c for c in alike if family(c.end.error_type) == kin)
    yield f"{end.error_type}, {structure}", *_total(c for c in alike if c.end == end)


def _own(end: EndClass, own: OwnOutcomes) -> tuple[int, int]:
    """The user's restarts after such an end; where there are none, after an end of its family."""
    levels = list(_levels(end, counted(own.counts)))[2:]
    return next(((passed, of) for _, passed, of in reversed(levels) if of), (0, 0))


def _total(counts: Iterable[Counted]) -> tuple[int, int]:
    counts = tuple(counts)
    return sum(c.passed for c in counts), sum(c.of for c in counts)
