"""Literals that a line must contain for a rule to match it, derived from the pattern.

A literal is a text of *units*. A unit below 256 is that byte. A unit of 256 and more stands for an ASCII
letter in either case (`chr(256 + lower case letter)`). So `(?i)nan` is one literal instead of eight.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from midwatch.rules.expressions import is_bytewise
from midwatch.rules.prefilter.syntax_tree import (
    EMPTY,
    Alternatives,
    Character,
    NotUnderstood,
    Repeat,
    Series,
    Tree,
    parse,
)

Literals = frozenset[str]
"""Alternatives: the line contains at least one of them."""

_NOTHING_KNOWN: Literals = frozenset(("",))
_MAX_ALTERNATIVES = 32
_EITHER_CASE = 256
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
MIN_LENGTH = 2
_MOST_BEGINNINGS = 4
_BEFORE = 4
_MIN_BEGINNING = 3
_REMEMBERED = 4096
"""Patterns in the cache: a swap of rules compiles hundreds, and only one or two are new."""


@dataclass(frozen=True, slots=True)
class _Knowledge:
    """Facts that hold for every match of a node.

    - `exact`: the match is one of these; None if unknown.
    - `first` and `last`: the match begins, and ends, with one of these.
    - `inner`: of each of these demands, the match contains one alternative.
    - `unless_empty`: the match is empty or begins with one of these characters; None if unknown.
    """

    exact: Literals | None = None
    first: Literals = _NOTHING_KNOWN
    last: Literals = _NOTHING_KNOWN
    inner: tuple[Literals, ...] = ()
    unless_empty: Literals | None = None

    def best(self) -> Literals | None:
        """The best demand: the one with the longest shortest alternative."""
        demands = [known for known in (*self.inner, self.first, self.last) if "" not in known]
        return max(demands, key=lambda known: (min(map(len, known)), -len(known)), default=None)


_UNKNOWN = _Knowledge()


def required_literals(pattern: str) -> tuple[Literals, ...]:
    """The demands of a pattern: every matching line contains a literal of each demand.

    () means that nothing is known. No literal is shorter than MIN_LENGTH, and none holds a line feed.
    """
    try:
        tree = parse(pattern).tree
    except NotUnderstood:
        return ()
    return _usable(_Derivation(bytewise=is_bytewise(pattern)).of(tree))


@lru_cache(maxsize=_REMEMBERED)
def required_by_way(pattern: str) -> tuple[tuple[Literals, ...], ...]:
    """The demands of each way in which the pattern can match; () if one way demands nothing.

    The ways are the alternatives of the whole pattern. Every matching line fulfils all demands of one way. So
    each way may be searched by the literal that suits it best.
    """
    try:
        tree = parse(pattern).tree
    except NotUnderstood:
        return ()
    derivation = _Derivation(bytewise=is_bytewise(pattern), in_lines=True)
    ways = tuple(_usable(derivation.of(way)) for way in _ways(tree))
    return ways if all(ways) else ()


@lru_cache(maxsize=_REMEMBERED)
def beginnings(pattern: str) -> tuple[bytes, ...]:
    """A few literals: every match of the pattern begins with one of them; () if they are unknown."""
    try:
        tree = parse(pattern).tree
    except NotUnderstood:
        return ()
    known = _Derivation(bytewise=is_bytewise(pattern)).of(tree).first
    written = {spellings(literal)[0] for literal in known if spelling_count(literal) == 1}
    few = len(written) == len(known) <= _MOST_BEGINNINGS
    return tuple(sorted(written)) if few and min(map(len, written)) >= _MIN_BEGINNING else ()


def _ways(tree: Tree) -> list[Tree]:
    if isinstance(tree, Alternatives):
        return [way for part in tree.parts for way in _ways(part)]
    if isinstance(tree, Series):
        parts = [part for part in tree.parts if part != EMPTY]
        if len(parts) == 1:
            return _ways(parts[0])
    return [tree]


def _usable(known: _Knowledge) -> tuple[Literals, ...]:
    demands = (*known.inner, known.first, known.last)
    return tuple(
        dict.fromkeys(demand for demand in demands if demand and min(map(len, demand)) >= MIN_LENGTH)
    )


def spellings(literal: str) -> list[bytes]:
    """The byte strings of a literal; each letter in either case doubles their number."""
    choices = [
        (ord(unit),)
        if ord(unit) < _EITHER_CASE
        else (ord(unit) - _EITHER_CASE, ord(unit) - _EITHER_CASE - 32)
        for unit in literal
    ]
    return [bytes(spelling) for spelling in product(*choices)]


def spelling_count(literal: str) -> int:
    """The number of byte strings that `spellings` gives; each letter in either case doubles it."""
    return 1 << sum(ord(unit) >= _EITHER_CASE for unit in literal)


def lowered(literal: str) -> str:
    """The literal in a lower-cased text."""
    return "".join(chr(ord(unit) % _EITHER_CASE) for unit in literal).translate(_LOWER)


class _Derivation:
    def __init__(self, *, bytewise: bool, in_lines: bool = False) -> None:
        self.bytewise = bytewise
        self.in_lines = in_lines

    def of(self, tree: Tree) -> _Knowledge:
        match tree:
            case Character():
                units = self.units(tree)
                return _UNKNOWN if units is None else _exactly(units)
            case Series():
                return _in_series(self.of(part) for part in tree.parts)
            case Alternatives():
                return _either([self.of(part) for part in tree.parts])
            case Repeat():
                return self.repeated(tree)
        return _UNKNOWN

    def units(self, node: Character) -> Literals | None:
        """The units that spell the character, or None if they are not surely known."""
        found: set[str] = set()
        for point in node.points:
            letter = chr(point)
            if point == ord("\n"):
                return None
            if point < 128:
                # In UTF-8, folding k and s also matches the Kelvin sign and the long s.
                if node.fold and not self.bytewise and letter in "ksKS":
                    return None
                folds = node.fold and letter.isalpha()
                found.add(chr(_EITHER_CASE + ord(letter.lower())) if folds else letter)
            elif self.bytewise or node.fold or 0xD800 <= point <= 0xDFFF:
                return None
            else:
                found.add(letter.encode().decode("latin-1"))
        return frozenset(found) or None

    def repeated(self, node: Repeat) -> _Knowledge:
        once = self.of(node.part)
        if node.low == 0:
            if node.high == 1 and once.exact is not None and len(once.exact) < _MAX_ALTERNATIVES:
                return _exactly(once.exact | _NOTHING_KNOWN)
            return _Knowledge(unless_empty=self.initials(node.part, once))
        known = once
        for _ in range(min(node.low, 8) - 1):
            known = _in_series((known, once))
        if node.high == node.low <= 8:
            return known
        # More repetitions may stand between the first and the last, so only the ends are known.
        demands = (*known.inner, known.first) if "" not in known.first else known.inner
        return _Knowledge(None, known.first, once.last, demands)

    def initials(self, part: Tree, once: _Knowledge) -> Literals | None:
        """The characters with which a part begins, without a line feed; None if unknown."""
        first: Literals | None = once.first
        if isinstance(part, Character):
            first = self.units(Character(part.points - {ord("\n")}, part.fold)) if self.in_lines else None
        return frozenset(units[0] for units in first) if first and "" not in first else None


def _exactly(literals: Literals) -> _Knowledge:
    return _Knowledge(literals, literals, literals)


def _joined(left: Literals, right: Literals) -> Literals | None:
    if len(left) * len(right) > _MAX_ALTERNATIVES:
        return None
    return frozenset(a + b for a in left for b in right)


def _in_series(parts: Iterable[_Knowledge]) -> _Knowledge:
    """Knowledge of parts in series: exact texts join into a run until an unknown part ends it."""
    run: Literals = _NOTHING_KNOWN
    first: Literals | None = None
    inner: list[Literals] = []
    before: Literals | None = None  # the ends of the run before parts that may be empty
    beyond: Literals = frozenset()  # these ends with the first character of each such part
    for part in parts:
        inner.extend(part.inner)
        if part.unless_empty is not None:
            if before is None:
                before, beyond = frozenset(units[-_BEFORE:] for units in run), frozenset()
            beyond |= frozenset(a + b for a in before for b in part.unless_empty)
        elif before is not None:
            beyond |= frozenset(a + b for a in before for b in part.first)
            if not beyond & before and len(beyond) <= _MAX_ALTERNATIVES:
                inner.append(beyond)
            before = None
        grown = _joined(run, part.first)
        if part.exact is not None and grown is not None:
            run = grown
            continue
        ended = run if grown is None else grown
        inner.append(ended)
        if grown is None:
            inner.append(part.first)
        if first is None:
            first = ended
        run = part.last
    if first is None:
        return _Knowledge(run, run, run, tuple(inner))
    inner.append(run)
    return _Knowledge(None, first, run, tuple(known for known in inner if "" not in known))


def _either(parts: list[_Knowledge]) -> _Knowledge:
    exact = frozenset[str]()
    for part in parts:
        exact |= part.exact if part.exact is not None else frozenset()
    if all(part.exact is not None for part in parts) and len(exact) <= _MAX_ALTERNATIVES:
        return _exactly(exact)
    first = frozenset[str]().union(*(part.first for part in parts))
    last = frozenset[str]().union(*(part.last for part in parts))
    bests = [best for part in parts if (best := part.best()) is not None]
    together = frozenset[str]().union(*bests)
    return _Knowledge(
        None,
        first if len(first) <= _MAX_ALTERNATIVES else _NOTHING_KNOWN,
        last if len(last) <= _MAX_ALTERNATIVES else _NOTHING_KNOWN,
        (together,) if len(bests) == len(parts) else (),
    )
