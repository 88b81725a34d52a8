"""Triggers: a few short literals, at least one of which stands in every line that a rule can match."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from midwatch.rules.literals import Literals, lowered, required_literals, spellings

TRIGGER_COST = 5.0
"""What one more literal costs the scan, in microseconds a megabyte: a fourteenth of one pass."""
FALSE_LINE_COST = 1.1
"""What one line looked at in vain costs, in microseconds."""
LOWER_COST = 240.0
"""What lower-casing costs, in microseconds a megabyte: about 50 literals more."""

_GRAM = 4
_MAX_LENGTH = 8
_ROUNDS = 6


@dataclass(frozen=True, slots=True)
class Triggers:
    """`spellings`: the byte strings to scan for, in the lower-cased text if `in_lower_case`.

    `unguarded` are the indexes of the patterns that need another way. `of_pattern` holds, for the pattern of
    each index, the spellings that stand for it; () for the unguarded. `cost` is an estimate in microseconds
    a megabyte.
    """

    spellings: tuple[bytes, ...]
    in_lower_case: bool
    unguarded: tuple[int, ...]
    of_pattern: tuple[tuple[bytes, ...], ...]
    cost: float


def choose_triggers(patterns: Sequence[str], background: bytes) -> Triggers:
    """The cheapest triggers found for all patterns together.

    `background` is text in which no rule should hit; a literal that is common there costs. Any text gives
    correct triggers, only slower ones. The same input always gives the same triggers.
    """
    demands = [required_literals(pattern) for pattern in patterns]
    as_written = _Selection(demands, background).result(in_lower_case=False)
    if len(as_written.spellings) * TRIGGER_COST < LOWER_COST:
        return as_written
    lower = [
        tuple(frozenset(lowered(literal) for literal in alternatives) for alternatives in demand)
        for demand in demands
    ]
    in_lower_case = _Selection(lower, background.lower()).result(in_lower_case=True)
    return min(as_written, in_lower_case, key=lambda triggers: triggers.cost)


@lru_cache(maxsize=1 << 14)
def grams(literal: str) -> list[str]:
    """The short pieces of a literal that can stand for it, each once, in order."""
    if len(literal) <= _GRAM:
        return [literal]
    return list(dict.fromkeys(literal[i : i + _GRAM] for i in range(len(literal) - _GRAM + 1)))


class _Selection:
    def __init__(self, demands: Sequence[tuple[Literals, ...]], background: bytes) -> None:
        self.demands = demands
        self.background = background
        self.megabytes = max(len(background) / 1e6, 0.02)
        self.costs: dict[str, float] = {}
        self.uses: Counter[str] = Counter()
        self.popularity = Counter(
            gram
            for demands in self.demands
            for gram in {gram for demand in demands for literal in demand for gram in grams(literal)}
        )
        self.chosen: list[dict[str, str]] = [{} for _ in demands]

    def result(self, *, in_lower_case: bool) -> Triggers:
        guarded = [index for index, demands in enumerate(self.demands) if demands]
        for _ in range(_ROUNDS):
            changed = sum(self.improve(index) for index in guarded)
            changed += sum(self.dropped(gram) for gram in sorted(self.in_use(), key=self.cost, reverse=True))
            if not changed:
                break
        longer = {gram: self.lengthened(gram) for gram in self.in_use()}
        written = _without_longer(spelling for gram in longer.values() for spelling in spellings(gram))
        return Triggers(
            spellings=tuple(sorted(written)),
            in_lower_case=in_lower_case,
            unguarded=tuple(index for index, demands in enumerate(self.demands) if not demands),
            of_pattern=tuple(
                tuple(sorted({each for gram in chosen.values() for each in spellings(longer[gram])}))
                for chosen in self.chosen
            ),
            cost=sum(self.cost(gram) for gram in longer) + in_lower_case * LOWER_COST,
        )

    def cost(self, gram: str) -> float:
        """Microseconds a megabyte that the gram costs when nothing else has chosen it yet."""
        known = self.costs.get(gram)
        if known is None:
            written = spellings(gram)
            hits = sum(self.background.count(spelling) for spelling in written)
            known = TRIGGER_COST * len(written) + FALSE_LINE_COST * hits / self.megabytes
            self.costs[gram] = known
        return known

    def in_use(self) -> list[str]:
        """The grams that some pattern has chosen."""
        return [gram for gram, uses in self.uses.items() if uses]

    def choose(self, index: int, grams_of_literals: dict[str, str]) -> None:
        """Let one pattern rely on these grams and on no others."""
        for gram in set(self.chosen[index].values()):
            self.uses[gram] -= 1
        self.chosen[index] = grams_of_literals
        for gram in set(grams_of_literals.values()):
            self.uses[gram] += 1

    def improve(self, index: int) -> bool:
        """Choose anew for one pattern, given what all others have chosen; True when that changed anything."""
        before = self.chosen[index]
        self.choose(index, {})
        options = [self.cover(demand) for demand in self.demands[index]]
        _, _, best = min(options, key=lambda option: option[:2])
        self.choose(index, best)
        return best != before

    def dropped(self, gram: str) -> bool:
        """Do without one gram if all that rely on it find something cheaper together."""
        relying = [index for index, chosen in enumerate(self.chosen) if gram in chosen.values()]
        before = [self.chosen[index] for index in relying]
        saved = self.cost(gram)
        self.costs[gram] = math.inf
        for index in relying:
            self.choose(index, {})
        spent = 0.0
        for index in relying:
            options = [self.cover(demand) for demand in self.demands[index]]
            cost, _, best = min(options, key=lambda option: option[:2])
            spent += cost
            self.choose(index, best)
            if spent >= saved:
                break
        self.costs[gram] = saved
        if spent < saved:
            return True
        for index, chosen in zip(relying, before, strict=True):
            self.choose(index, chosen)
        return False

    def cover(self, demand: Literals) -> tuple[float, list[str], dict[str, str]]:
        """The cheapest grams for all alternatives of one demand; what is in use already is free."""
        taken: dict[str, str] = {}
        grams_taken: set[str] = set()
        total = 0.0
        for literal in sorted(demand, key=lambda literal: (len(literal), literal)):
            free = [gram for gram in grams(literal) if self.uses[gram] or gram in grams_taken]
            if free:
                taken[literal] = free[0]
                continue
            gram = min(grams(literal), key=lambda gram: (self.cost(gram) / self.popularity[gram], gram))
            taken[literal] = gram
            grams_taken.add(gram)
            total += self.cost(gram)
        return total, sorted(taken.values()), taken

    def lengthened(self, gram: str) -> str:
        """The gram with what follows it in every literal that relies on it: fewer lines looked at in vain."""
        relying = [
            literal
            for chosen in self.chosen
            for literal, chosen_gram in chosen.items()
            if chosen_gram == gram
        ]
        longer = gram
        while len(longer) < _MAX_LENGTH:
            following = {literal[literal.find(longer) + len(longer) :][:1] for literal in relying}
            if len(following) != 1 or following == {""}:
                break
            candidate = longer + following.pop()
            if len(spellings(candidate)) > len(spellings(longer)):
                break
            longer = candidate
        return longer


def _without_longer(written: Iterable[bytes]) -> set[bytes]:
    """Drop what contains another trigger: the shorter one finds its lines too."""
    kept: set[bytes] = set()
    for spelling in sorted(written, key=lambda spelling: (len(spelling), spelling)):
        if not any(shorter in spelling for shorter in kept):
            kept.add(spelling)
    return kept
