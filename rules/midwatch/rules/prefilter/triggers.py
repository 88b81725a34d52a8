"""Triggers: a few short literals. Every line that a rule can match holds at least one of them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from sys import byteorder

from midwatch.rules.prefilter.literals import (
    MIN_LENGTH,
    Literals,
    lowered,
    required_by_way,
    spelling_count,
    spellings,
)

TRIGGER_COST = 4.0
"""The cost of one more literal, in microseconds a megabyte: its share of a pass and of the offsets found."""
SHORT_COST = 40.0
"""The extra cost of a literal below four bytes: such literals need a separate pass."""
FALSE_LINE_COST = 0.7
"""The cost of one false candidate, in microseconds: a line that holds a literal and that no rule matches.

It is a little below the measured cost, because the background holds more such lines than logs do.
"""
LOWER_COST = 240.0
"""The cost of lower-casing, in microseconds a megabyte: as much as about 60 literals."""

_GRAM = 4
_MAX_LENGTH = 12  # this distinguishes `Exception: ` and `Exception (` from `Exception raised`
_ROUNDS = 6


@dataclass(frozen=True, slots=True)
class Triggers:
    """The byte strings to scan for: `spellings` in the text as it is, `lowered` in the lower-cased text.

    `folded` holds the indexes of the patterns whose triggers are in the lower-cased text. `unguarded` holds
    those of the patterns without triggers. `of_pattern` holds the spellings for each pattern, by index; ()
    without triggers. `cost` is an estimate in microseconds a megabyte.
    """

    spellings: tuple[bytes, ...]
    lowered: tuple[bytes, ...]
    folded: frozenset[int]
    unguarded: tuple[int, ...]
    of_pattern: tuple[tuple[bytes, ...], ...]
    cost: float


def choose_triggers(patterns: Sequence[str], background: bytes) -> Triggers:
    """The cheapest triggers found for all patterns together.

    `background` is text in which no rule should hit. A literal costs more, the more often it stands there.
    Any text gives correct triggers; only their speed differs. The same input gives the same triggers.
    """
    ways = [required_by_way(pattern) for pattern in patterns]
    as_written = _Selection(ways, background).result()
    plain = _triggers(len(ways), as_written, _NOTHING)
    folded = {
        pattern
        for pattern, chosen in as_written.of_pattern.items()
        if any(spelling_count(gram) > 1 for gram in chosen)
    }
    if not folded or len(as_written.spellings) * TRIGGER_COST < LOWER_COST:
        return plain
    # Lower-case only these: in lower case more lines would hold the literals of the other patterns.
    written = [() if pattern in folded else way for pattern, way in enumerate(ways)]
    lower = [_lowered(way) if pattern in folded else () for pattern, way in enumerate(ways)]
    mixed = _triggers(
        len(ways),
        _Selection(written, background).result(),
        _Selection(lower, background.lower()).result(),
    )
    return min(plain, mixed, key=lambda triggers: triggers.cost)


_Way = tuple[tuple[Literals, ...], ...]


def _lowered(way: _Way) -> _Way:
    return tuple(
        tuple(frozenset(lowered(literal) for literal in demand) for demand in demands) for demands in way
    )


@dataclass(frozen=True, slots=True)
class _Selected:
    """The byte strings to scan for, and the chosen grams of each pattern that has any."""

    spellings: frozenset[bytes]
    of_pattern: Mapping[int, frozenset[str]]
    cost: float

    def spellings_of(self, pattern: int) -> Iterator[bytes]:
        """All spellings of the pattern's grams."""
        for gram in self.of_pattern.get(pattern, ()):
            yield from spellings(gram)


_NOTHING = _Selected(frozenset(), {}, 0.0)


def _triggers(count: int, written: _Selected, lower: _Selected) -> Triggers:
    of_pattern = [
        sorted({spelling for chosen in (written, lower) for spelling in chosen.spellings_of(pattern)})
        for pattern in range(count)
    ]
    # A lower-case trigger inside a spelling finds every line of that spelling too.
    needed = (
        spelling
        for spelling in written.spellings
        if not any(trigger in spelling.lower() for trigger in lower.spellings)
    )
    return Triggers(
        spellings=tuple(sorted(needed)),
        lowered=tuple(sorted(lower.spellings)),
        folded=frozenset(lower.of_pattern),
        unguarded=tuple(pattern for pattern, found in enumerate(of_pattern) if not found),
        of_pattern=tuple(map(tuple, of_pattern)),
        cost=written.cost + lower.cost + (LOWER_COST if lower.spellings else 0.0),
    )


@lru_cache(maxsize=1 << 14)
def grams(literal: str) -> list[str]:
    """The short pieces of a literal that can be its trigger, each once, in order."""
    if len(literal) <= _GRAM:
        return [literal]
    return list(dict.fromkeys(literal[i : i + _GRAM] for i in range(len(literal) - _GRAM + 1)))


@lru_cache(maxsize=2)
def _gram_counts(background: bytes) -> dict[int, Counter[bytes]]:
    """How often each short byte string stands in the background, by length.

    It is kept because admission compiles many sets with one background.
    """
    longest: Counter[int] = Counter()
    for offset in range(_GRAM):
        whole = (len(background) - offset) // _GRAM * _GRAM
        if whole > 0:  # four bytes read as one integer are counted several times faster than a slice
            longest.update(memoryview(background)[offset : offset + whole].cast("I").tolist())
    counts = {_GRAM: Counter({gram.to_bytes(_GRAM, byteorder): n for gram, n in longest.items()})}
    for length in range(_GRAM - 1, MIN_LENGTH - 1, -1):
        shorter: Counter[bytes] = Counter()
        for gram, n in counts[length + 1].items():
            shorter[gram[:length]] += n
        if len(background) >= length:  # no longer string begins with the last one
            shorter[background[-length:]] += 1
        counts[length] = shorter
    return counts


class _Selection:
    """Each way of each pattern chooses one of its demands, and a gram for each literal of the demand."""

    def __init__(self, patterns: Sequence[_Way], background: bytes) -> None:
        self.owners = [index for index, ways in enumerate(patterns) for _ in ways]
        self.demands = [demands for ways in patterns for demands in ways]
        self.background = background
        self.seen = _gram_counts(background)
        self.megabytes = max(len(background) / 1e6, 0.02)
        self.costs: dict[str, float] = {}
        self.users: defaultdict[str, set[int]] = defaultdict(set)
        self.popularity = Counter(
            gram
            for demands in self.demands
            for gram in {gram for demand in demands for literal in demand for gram in grams(literal)}
        )
        self.chosen: list[dict[str, str]] = [{} for _ in self.demands]
        self.at_first = True

    def result(self) -> _Selected:
        """The final selection of all ways together."""
        # Ways with few grams choose first; the others then share those grams.
        freedom = [
            max(min(len(grams(literal)) for literal in demand) for demand in demands)
            for demands in self.demands
        ]
        order = sorted(range(len(self.demands)), key=freedom.__getitem__)
        for _ in range(_ROUNDS):
            changed = sum(self.improve(index) for index in order)
            self.at_first = False
            changed += sum(self.dropped(gram) for gram in sorted(self.in_use(), key=self.cost, reverse=True))
            if not changed:
                break
        longer = {gram: self.lengthened(gram, self.relying(gram)) for gram in self.in_use()}
        final = {gram for of_literals in longer.values() for gram in of_literals.values()}
        of_pattern: defaultdict[int, set[str]] = defaultdict(set)
        for owner, chosen in zip(self.owners, self.chosen, strict=True):
            of_pattern[owner].update(longer[gram][literal] for literal, gram in chosen.items())
        return _Selected(
            spellings=frozenset(_without_longer(spelling for gram in final for spelling in spellings(gram))),
            of_pattern={owner: frozenset(chosen) for owner, chosen in of_pattern.items() if chosen},
            cost=sum(map(self.cost, final)),
        )

    def cost(self, gram: str) -> float:
        """The cost of the gram in microseconds a megabyte, if no other way has chosen it."""
        known = self.costs.get(gram)
        if known is None:
            written = spellings(gram)
            hits = sum(map(self.count, written))
            trigger_cost = TRIGGER_COST if len(written[0]) >= _GRAM else TRIGGER_COST + SHORT_COST
            known = trigger_cost * len(written) + FALSE_LINE_COST * hits / self.megabytes
            self.costs[gram] = known
        return known

    def count(self, spelling: bytes) -> int:
        """How often the spelling stands in the background."""
        if len(spelling) in self.seen:
            return self.seen[len(spelling)][spelling]
        return self.background.count(spelling)

    def liking(self, gram: str) -> tuple[float, int, str]:
        """A sort key. In the first round a popular gram is cheaper; later only the cost counts."""
        cost, popularity = self.cost(gram), self.popularity[gram]
        return (cost / popularity if self.at_first else cost, -popularity, gram)

    def in_use(self) -> list[str]:
        """The grams that at least one way has chosen."""
        return [gram for gram, users in self.users.items() if users]

    def choose(self, index: int, grams_of_literals: dict[str, str]) -> None:
        """Make one way use exactly these grams."""
        for gram in set(self.chosen[index].values()):
            self.users[gram].discard(index)
        self.chosen[index] = grams_of_literals
        for gram in set(grams_of_literals.values()):
            self.users[gram].add(index)

    def improve(self, index: int) -> bool:
        """Choose anew for one way, with the choices of all others fixed; True if its choice changed."""
        before = self.chosen[index]
        self.choose(index, {})
        options = [self.cover(demand) for demand in self.demands[index]]
        _, _, best = min(options, key=lambda option: option[:2])
        self.choose(index, best)
        return best != before

    def dropped(self, gram: str) -> bool:
        """Drop one gram if all ways that use it find cheaper grams together; True if it was dropped."""
        relying = sorted(self.users[gram])
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
        """The cheapest grams for all alternatives of one demand; a gram in use is free."""
        taken: dict[str, str] = {}
        grams_taken: set[str] = set()
        total = 0.0
        users = self.users
        for literal in sorted(demand, key=lambda literal: (len(literal), literal)):
            free = next((gram for gram in grams(literal) if users.get(gram) or gram in grams_taken), None)
            if free is not None:
                taken[literal] = free
                continue
            gram = min(grams(literal), key=self.liking)
            taken[literal] = gram
            grams_taken.add(gram)
            total += self.cost(gram)
        return total, sorted(taken.values()), taken

    def relying(self, gram: str) -> list[str]:
        """The literals whose chosen gram this is."""
        return sorted(
            {
                literal
                for index in self.users[gram]
                for literal, chosen in self.chosen[index].items()
                if chosen == gram
            }
        )

    def lengthened(self, gram: str, literals: Sequence[str]) -> dict[str, str]:
        """For each literal, the gram with more of the characters around it, for fewer false candidates.

        Literals with different characters get different grams, if these together cost less than the gram.
        """
        best = dict.fromkeys(literals, gram)
        price = self.cost(gram)
        if len(gram) == _MAX_LENGTH:
            return best
        for before, behind in ((0, 1), (1, 0)):
            parts: defaultdict[str, list[str]] = defaultdict(list)
            for literal in literals:
                at = literal.find(gram)
                parts[literal[max(0, at - before) : at + len(gram) + behind]].append(literal)
            least = TRIGGER_COST * sum(map(spelling_count, parts))
            if gram in parts or least > price or (before and least == price):
                continue
            found: dict[str, str] = {}
            for part, of_part in parts.items():
                found.update(self.lengthened(part, of_part))
            cost = sum(map(self.cost, set(found.values())))
            if cost < price or (cost == price and len(parts) == 1):
                best, price = found, cost
        return best


def _without_longer(written: Iterable[bytes]) -> set[bytes]:
    """Drop each spelling that contains another one: the shorter one finds its lines too."""
    kept: set[bytes] = set()
    for spelling in sorted(written, key=lambda spelling: (len(spelling), spelling)):
        if not any(shorter in spelling for shorter in kept):
            kept.add(spelling)
    return kept
