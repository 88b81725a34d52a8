"""The chance that the same start passes, from counts of ends like this one. Pure.

A class of ends is the error type, what the rule claims about transience, and whether the attempt made a step.
Few ends are of one class, so each class leans on a wider one. The widest is all ends. Then come those with
the same claim, of the same type, of the same family and claim, of the same type and claim. The last two come
once more with the same steps. The estimate of the wider class counts like `STRENGTH` further ends. The user's
own restarts lean on the labelled ends in the same way.

The type tells more than an unknown claim does: no labelled end without memory was worth a restart, whoever
told of it. A person's interrupt tells of its own type only.

Labels come from single excerpts, so no labelled end says how a second restart after the same end went.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from midwatch.agents.rulesets.outcomes import Counts, OwnOutcomes, read_counts
from midwatch.streams.records import Alike, Chance, Verdict
from midwatch.streams.records.error_types import family

STRENGTH = 4.0
"""How many ends the estimate of the wider class counts for."""
ENOUGH = 5
"""`Chance.like` is the narrowest class with so many labelled ends."""
NEAR = 0.05
"""The sentence names classes until the ends of these alone have a share so near the chance."""
FILE = "labelled_ends.json"
_BY_A_PERSON = "user_interrupt"
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
    levels = _levels(end, labelled)
    share = _EVEN
    for level in levels:
        share = smoothed(share, level.worth, level.of)
    enough = next((level for level in reversed(levels) if level.of >= ENOUGH), levels[0])
    own_passed, own_of = _own(end, own) if own else (0, 0)
    return Chance(
        share=round(smoothed(share, own_passed, own_of), 4),
        worth=enough.worth,
        of=enough.of,
        like=enough.like,
        stepped=end.stepped,
        own_passed=own_passed,
        own=own_of,
        outcomes=own.hash if own else "",
        classes=_carrying(share, levels),
        grounds=sum(c.of for c in labelled if _tells_of(end, c.end)) + own_of,
    )


def smoothed(prior: float, passed: float, of: float) -> float:
    """The share of `passed` among `of`, drawn towards `prior` as if by `STRENGTH` further ends."""
    return (STRENGTH * prior + passed) / (STRENGTH + of)


def _levels(end: EndClass, counts: Sequence[Counted]) -> list[Alike]:
    """From the widest class to the narrowest: what its ends have in common, and its counts."""
    claim, steps = _SAID[end.transient], "after a step" if end.stepped else "before any step"
    kin = family(end.error_type)
    typed = [c for c in counts if c.end.error_type == end.error_type]
    known = typed + [c for c in counts if c.end.error_type not in (end.error_type, _BY_A_PERSON)]
    claimed = [c for c in known if c.end.transient is end.transient]
    akin = [c for c in claimed if kin != "none" and family(c.end.error_type) == kin]
    return [
        _alike("all failures", known),
        _alike(claim, claimed),
        _alike(end.error_type, typed),
        _alike(f"{kin}, {claim}", akin),
        _alike(f"{end.error_type}, {claim}", (c for c in typed if c.end.transient is end.transient)),
        _alike(f"{kin}, {claim}, {steps}", (c for c in akin if c.end.stepped == end.stepped)),
        _alike(f"{end.error_type}, {claim}, {steps}", (c for c in typed if c.end == end)),
    ]


def _carrying(share: float, levels: Sequence[Alike]) -> tuple[Alike, ...]:
    """The classes, from the narrowest, until one has enough ends and they alone have nearly this share."""
    found: dict[tuple[int, int], Alike] = {}
    left, weight, weighted = 1.0, 0.0, 0.0
    for level in reversed(levels):
        if not level.of:
            continue
        part = left * level.of / (STRENGTH + level.of)
        left, weight = left - part, weight + part
        weighted += part * level.worth / level.of
        found.setdefault((level.worth, level.of), level)  # equal counts are mostly the same ends
        if level.of >= ENOUGH and abs(weighted / weight - share) <= NEAR:
            break
    return tuple(found.values())


def _tells_of(end: EndClass, one: EndClass) -> bool:
    """Whether it has the same type, or the same claim; where that is unknown, within the family only."""
    if one.error_type == end.error_type:
        return True
    if one.error_type == _BY_A_PERSON or one.transient is not end.transient:
        return False
    return end.transient is not None or family(one.error_type) == family(end.error_type) != "none"


def _own(end: EndClass, own: OwnOutcomes) -> tuple[int, int]:
    """The user's restarts after such an end; where there are none, after an end of its family."""
    narrow = reversed(_levels(end, counted(own.counts))[-2:])
    return next(((level.worth, level.of) for level in narrow if level.of), (0, 0))


def _alike(like: str, counts: Iterable[Counted]) -> Alike:
    counts = tuple(counts)
    return Alike(like, sum(c.passed for c in counts), sum(c.of for c in counts))
