"""The scanner finds the triggers in a chunk, with a few SIMD automata of up to 32 literals each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import ahocorasick_rs

from midwatch.rules.prefilter.packing import pack

_FEW = 8
_DECOYS = (b"\1\2\3\4", b"\5\6\7\10", b"\16\17\20\21", b"\22\23\24\25")

Find = Callable[[bytes], list[int]]
Clock = Callable[[], float]


def build_scanner(literals: Sequence[bytes], sample: bytes = b"") -> Find:
    """A function from a text to the sorted offsets at which a literal begins.

    Of overlapping occurrences it gives only the leftmost. No literal holds a line feed, so it gives an offset
    in every line with an occurrence. `sample` is text like the text to be scanned; it affects only the speed.
    """
    return scanner_of(pack(literals, sample))


def scanner_of(packed: Iterable[Sequence[bytes]], packed_lowered: Iterable[Sequence[bytes]] = ()) -> Find:
    """The same for packed literals: each pack makes one automaton, with its literals in that order.

    The literals of `packed_lowered` are searched in the lower-cased text.
    """
    automata, over_lowered = list(map(_automaton, packed)), list(map(_automaton, packed_lowered))
    if not automata and not over_lowered:
        return lambda _: []
    if len(automata) == 1 and not over_lowered:
        only = automata[0]
        return lambda text: [start for _, start, _ in only(text)]

    def find(text: bytes) -> list[int]:
        offsets = [start for automaton in automata for _, start, _ in automaton(text)]
        if over_lowered:
            lowered = text.lower()
            offsets += [start for automaton in over_lowered for _, start, _ in automaton(lowered)]
        offsets.sort()
        return offsets

    return find


def _automaton(literals: Sequence[bytes]) -> Callable[[bytes], list[tuple[int, int, int]]]:
    # If three bytes distinguish the literals, the library searches for these bytes, however common they are.
    # For `nan` and `inf` that is seven times slower than thirty other literals. Decoys prevent it.
    decoys = _DECOYS if 1 < len(literals) <= _FEW else ()
    # The library uses its SIMD search only with leftmost-first.
    kind = ahocorasick_rs.MatchKind.LeftmostFirst
    built = ahocorasick_rs.BytesAhoCorasick((*literals, *decoys), matchkind=kind)
    return built.find_matches_as_indexes
