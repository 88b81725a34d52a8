"""Finds where triggers stand in a chunk: several SIMD automata of few literals each.

One automaton of 12 to 16 literals scans at about ten gigabytes a second, of 32 at a quarter of that, and
beyond 64 the SIMD path is lost altogether. So the literals are dealt out over as many automata as keep each
of them fast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ahocorasick_rs

LITERALS_PER_AUTOMATON = 16
_FEWEST, _MOST = 12, 22
_TRIES = 5

Find = Callable[[bytes], list[int]]
Clock = Callable[[], float]


def build_scanner(literals: Sequence[bytes], sample: bytes = b"", clock: Clock | None = None) -> Find:
    """A function from a text to the sorted offsets at which a literal begins.

    Of overlapping occurrences only the leftmost is told: as no literal holds a line feed, every line with an
    occurrence has one that is told. With a clock (seconds of this thread's work) the number of automata is
    chosen by measuring on the sample; without one it follows from the number of literals alone.
    """
    if not literals:
        return lambda _: []
    usual = -(-len(literals) // LITERALS_PER_AUTOMATON)
    # Neighbours of sorted literals begin alike: dealing them out gives each automaton many first bytes,
    # without which the library would search for one common byte and be ten times slower.
    if clock is None or not sample:
        return _dealt_out(sorted(literals), usual)
    fewest, most = -(-len(literals) // _MOST), -(-len(literals) // _FEWEST)
    ways = [
        _dealt_out(order, count)
        for order in (sorted(literals), sorted(literals, key=lambda each: each[1:]), _by_end(literals))
        for count in range(fewest, most + 1)
    ]
    return min(ways, key=lambda find: _best(find, sample, clock))


def _by_end(literals: Sequence[bytes]) -> list[bytes]:
    return sorted(literals, key=lambda literal: literal[::-1])


def _best(find: Find, sample: bytes, clock: Clock) -> float:
    best = float("inf")
    for _ in range(_TRIES):
        begin = clock()
        find(sample)
        best = min(best, clock() - begin)
    return best


def _dealt_out(literals: Sequence[bytes], count: int) -> Find:
    automata = [_automaton(literals[first::count]) for first in range(count)]
    if count == 1:
        only = automata[0]
        return lambda text: [start for _, start, _ in only(text)]

    def find(text: bytes) -> list[int]:
        offsets = [start for automaton in automata for _, start, _ in automaton(text)]
        offsets.sort()
        return offsets

    return find


def _automaton(literals: Sequence[bytes]) -> Callable[[bytes], list[tuple[int, int, int]]]:
    # Only leftmost-first keeps the SIMD search in this library.
    built = ahocorasick_rs.BytesAhoCorasick(literals, matchkind=ahocorasick_rs.MatchKind.LeftmostFirst)
    return built.find_matches_as_indexes
