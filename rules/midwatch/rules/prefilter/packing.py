"""How literals share an automaton: which of them in which order, so that the scan rarely stops in vain.

The SIMD search of the aho-corasick library (Teddy) holds eight buckets. Of a place in the text it sees, for
each bucket, only whether the half-bytes of the next four bytes occur at these positions in any of the
bucket's literals; where they do, it stops and compares. Thirty-two literals thrown together stop it every few
bytes, and it runs at a fifth of its speed; put into buckets by likeness they cost it little more than eight.
The bucket of a literal is 7 minus its place modulo 8, unless one with the same lower half-bytes came before:
then it shares that one's.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

BUCKETS = 8
PER_BUCKET = 4
"""Literals; with more than 32 in all the library takes a search that is half as fast."""
WIDTH = 4
"""Bytes that the library looks at, or fewer if one of the automaton's literals is shorter."""
_SAMPLE = 1 << 17
_SLICES = 128
_RARE = (0x10, 0xF0)
"""Upper half-bytes that logs rarely hold; never that of the line feed."""

_Masks = tuple[int, ...]
"""For each position the lower and then the upper half-bytes that occur there, as sets of 16 bits."""


@dataclass(slots=True)
class _Bucket:
    masks: _Masks
    literals: list[bytes]
    stops: int


def pack(literals: Iterable[bytes], sample: bytes) -> list[list[bytes]]:
    """The literals of each automaton, in the order in which it must be given them, with decoys among them.

    Where a decoy stands in a text, its line is looked at in vain. The sample is text of the kind that will
    be scanned; any text gives a packing. None of the literals may be empty.
    """
    by_width: dict[int, list[bytes]] = {}
    for literal in sorted(set(literals)):
        by_width.setdefault(min(WIDTH, len(literal)), []).append(literal)
    return [
        _in_order(buckets[first : first + BUCKETS], width)
        for width, alike in sorted(by_width.items())
        for buckets in (_buckets(alike, _Stops(sample, width)),)
        for first in range(0, len(buckets), BUCKETS)
    ]


class _Stops:
    """Counts where in a sample a bucket would stop the scan.

    Each half-byte has a set of the places where it stands, as one long number: a bit for each byte.
    """

    def __init__(self, sample: bytes, width: int) -> None:
        step = max(1, len(sample) // _SLICES)
        size = _SAMPLE // _SLICES
        text = b"".join(sample[at : at + size] for at in range(0, len(sample), step))[:_SAMPLE] or b" "
        self.width = width
        self.places = [[_places(text, half, shift) for half in range(16)] for shift in (0, 4)]
        self.known: dict[tuple[int, int], int] = {}

    def masks(self, literal: bytes) -> _Masks:
        return tuple(bit for byte in literal[: self.width] for bit in (1 << (byte & 15), 1 << (byte >> 4)))

    def count(self, masks: _Masks) -> int:
        stops = -1
        for number, mask in enumerate(masks):
            places = self.known.get((number, mask))
            if places is None:
                places = self.known[number, mask] = self.of_mask(number, mask)
            stops &= places
        return stops.bit_count()

    def of_mask(self, number: int, mask: int) -> int:
        places = 0
        for half, those in enumerate(self.places[number & 1]):
            if mask >> half & 1:
                places |= those
        return places << (number >> 1)


def _places(text: bytes, half: int, shift: int) -> int:
    table = bytes(ord("1") if (byte >> shift) & 15 == half else ord("0") for byte in range(256))
    return int(text.translate(table), 2)


def _together(masks: _Masks, others: _Masks) -> _Masks:
    return tuple(map(int.__or__, masks, others))


def _buckets(literals: Sequence[bytes], stops: _Stops) -> list[_Bucket]:
    """As few full automata's buckets as hold all, by joining again and again the two that stop least more."""
    wanted = -(-len(literals) // (BUCKETS * PER_BUCKET)) * BUCKETS
    buckets = {
        number: _Bucket(masks, [literal], stops.count(masks))
        for number, literal in enumerate(literals)
        for masks in (stops.masks(literal),)
    }

    def dearer(one: _Bucket, other: _Bucket) -> int:
        return stops.count(_together(one.masks, other.masks)) - one.stops - other.stops

    joins = [
        (dearer(buckets[one], buckets[other]), one, other)
        for one in buckets
        for other in range(one)
        if len(buckets) > wanted
    ]
    heapq.heapify(joins)
    following = len(buckets)
    while len(buckets) > wanted and joins:
        _, first, second = heapq.heappop(joins)
        if first not in buckets or second not in buckets:
            continue
        one, other = buckets.pop(first), buckets.pop(second)
        masks = _together(one.masks, other.masks)
        joined = _Bucket(masks, one.literals + other.literals, stops.count(masks))
        for number, each in buckets.items():
            if len(each.literals) + len(joined.literals) <= PER_BUCKET:
                heapq.heappush(joins, (dearer(joined, each), following, number))
        buckets[following] = joined
        following += 1
    return _no_more_than(wanted, list(buckets.values()), stops)


def _no_more_than(wanted: int, buckets: list[_Bucket], stops: _Stops) -> list[_Bucket]:
    """Deal the literals of the smallest buckets out over those with room."""
    buckets.sort(key=lambda bucket: (-len(bucket.literals), [each[::-1] for each in bucket.literals]))
    while len(buckets) > wanted:
        for literal in buckets.pop().literals:
            masks = stops.masks(literal)
            _, place = min(
                (stops.count(_together(bucket.masks, masks)) - bucket.stops, place)
                for place, bucket in enumerate(buckets)
                if len(bucket.literals) < PER_BUCKET
            )
            bucket = buckets[place]
            bucket.literals.append(literal)
            bucket.masks = _together(bucket.masks, masks)
            bucket.stops = stops.count(bucket.masks)
        buckets.sort(key=lambda bucket: -len(bucket.literals))
    return buckets


def _in_order(buckets: Sequence[_Bucket], width: int) -> list[bytes]:
    """The literals in an order that puts each into its bucket.

    Where a bucket has no more of them while others have, a decoy keeps its place. It bears the lower
    half-bytes of a literal, and so joins that one's bucket, and upper ones that logs rarely hold: the scan
    stops no more often for it.
    """
    waiting = [list(bucket.literals) for bucket in buckets]
    ordered: list[bytes] = []
    placed: list[bytes] = []
    while any(waiting):
        turn = len(ordered) % BUCKETS
        own = waiting[turn] if turn < len(waiting) else []
        all_waiting = [each for queue in waiting for each in queue]
        new = [each for each in own if _key(each, width) not in placed]
        anywhere = [each for each in all_waiting if _key(each, width) in placed]
        room = len(ordered) + len(all_waiting) < BUCKETS * PER_BUCKET
        decoys = [each for each in _decoys(placed) if each not in ordered] if room else []
        literal = (new or anywhere or decoys or all_waiting)[0]
        for queue in waiting:
            if literal in queue:
                queue.remove(literal)
        placed.append(_key(literal, width))
        ordered.append(literal)
    return ordered


def _key(literal: bytes, width: int) -> bytes:
    return bytes(byte & 15 for byte in literal[:width])


def _decoys(keys: Sequence[bytes]) -> list[bytes]:
    return [bytes(upper | half for half in key) for upper in _RARE for key in keys]
