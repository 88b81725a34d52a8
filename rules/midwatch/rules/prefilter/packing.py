"""Packing: which literals share an automaton, and in which order, so that the scan rarely stops for nothing.

The SIMD search of the aho-corasick library (Teddy) has eight buckets. At each place of the text it compares
the half-bytes of the next four bytes with the literals of a bucket, position by position. It stops where
every half-byte occurs in some literal of the bucket, and then compares the text with the literals.

Thirty-two unsorted literals stop the search every few bytes, and it runs at a fifth of its speed. Sorted into
buckets of similar literals, they cost little more than eight literals. The bucket of a literal is 7 minus its
place modulo 8. But a literal with the same lower half-bytes as an earlier one shares the earlier one's
bucket.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

BUCKETS = 8
PER_BUCKET = 4
"""Most literals in a bucket. With more than 32 in all, the library takes a search that is half as fast."""
WIDTH = 4
"""Bytes that the library compares; fewer if the automaton has a shorter literal."""
_SAMPLE = 1 << 17
_SLICES = 128
_RARE = (0x10, 0xF0)
"""Upper half-bytes that are rare in logs; never the one of the line feed."""

_Masks = tuple[int, ...]
"""For each position, the lower and then the upper half-bytes that occur there, as sets of 16 bits."""


@dataclass(slots=True)
class _Bucket:
    masks: _Masks
    literals: list[bytes]
    stops: int


def pack(literals: Iterable[bytes], sample: bytes) -> list[list[bytes]]:
    """The literals of each automaton, in the order that it needs, with decoys among them.

    A decoy in a text makes its line a false candidate. `sample` is text like the text to be scanned; any text
    gives a packing. No literal may be empty.
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
    """Counts the places of a sample where a bucket would stop the scan.

    Logs repeat themselves, so it looks at each different window of `width` bytes once. A set of windows is
    one long number with a bit for each, and the windows that occur most often have the lowest bits.
    """

    def __init__(self, sample: bytes, width: int) -> None:
        self.sample = sample
        self.width = width
        self.known: list[dict[int, int]] = [{} for _ in range(2 * width)]

    @cached_property
    def windows(self) -> list[tuple[bytes, int]]:
        """Each different window with its number of places, rare ones first."""
        step = max(1, len(self.sample) // _SLICES)
        size = _SAMPLE // _SLICES
        slices = (self.sample[at : at + size] for at in range(0, len(self.sample), step))
        text = b"".join(slices)[:_SAMPLE] or b" "
        counted = Counter(text[at : at + self.width] for at in range(len(text) - self.width + 1))
        return sorted(counted.items(), key=lambda window: window[1])

    @cached_property
    def weights(self) -> list[int]:
        """For each bit of the numbers of places, the windows whose number has that bit."""
        numbers = [number for _, number in self.windows]
        bits = max(numbers, default=0).bit_length()
        return [_number(["01"[number >> bit & 1] for number in numbers]) for bit in range(bits)]

    @cached_property
    def places(self) -> list[list[int]]:
        """For each half-byte of a window, and each of its values, the windows that have it there."""
        columns = [bytes(window[at] for window, _ in self.windows) for at in range(self.width)]
        return [
            [_places(column, half, shift) for half in range(16)] for column in columns for shift in (0, 4)
        ]

    def masks(self, literal: bytes) -> _Masks:
        return tuple(bit for byte in literal[: self.width] for bit in (1 << (byte & 15), 1 << (byte >> 4)))

    def count(self, masks: _Masks) -> int:
        stops = -1
        for number, mask in enumerate(masks):
            of_mask = self.known[number]
            places = of_mask.get(mask)
            if places is None:
                places = of_mask[mask] = self.of_mask(number, mask)
            stops &= places
        return sum((stops & weight).bit_count() << bit for bit, weight in enumerate(self.weights))

    def of_mask(self, number: int, mask: int) -> int:
        places = 0
        for half, half_places in enumerate(self.places[number]):
            if mask >> half & 1:
                places |= half_places
        return places


def _places(text: bytes, half: int, shift: int) -> int:
    table = bytes(ord("1") if (byte >> shift) & 15 == half else ord("0") for byte in range(256))
    return _number(text.translate(table).decode("ascii"))


def _number(digits: Iterable[str]) -> int:
    """The number with these binary digits, the highest first."""
    return int("".join(digits) or "0", 2)


def _together(masks: _Masks, others: _Masks) -> _Masks:
    return tuple(map(int.__or__, masks, others))


def _buckets(literals: Sequence[bytes], stops: _Stops) -> list[_Bucket]:
    """The buckets of as few automata as hold all literals.

    It joins two buckets again and again: always the two whose union adds the fewest stops.
    """
    target = -(-len(literals) // (BUCKETS * PER_BUCKET)) * BUCKETS
    # A literal with a bucket of its own joins none, so nobody asks for its stops. Counting takes seconds.
    counted = len(literals) > target
    buckets = {
        number: _Bucket(masks, [literal], stops.count(masks) if counted else 0)
        for number, literal in enumerate(literals)
        for masks in (stops.masks(literal),)
    }

    def added_stops(one: _Bucket, other: _Bucket) -> int:
        return stops.count(_together(one.masks, other.masks)) - one.stops - other.stops

    joins = [
        (added_stops(buckets[one], buckets[other]), one, other)
        for one in buckets
        for other in range(one)
        if counted
    ]
    heapq.heapify(joins)
    following = len(buckets)
    while len(buckets) > target and joins:
        _, first, second = heapq.heappop(joins)
        if first not in buckets or second not in buckets:
            continue
        one, other = buckets.pop(first), buckets.pop(second)
        masks = _together(one.masks, other.masks)
        joined = _Bucket(masks, one.literals + other.literals, stops.count(masks))
        for number, bucket in buckets.items():
            if len(bucket.literals) + len(joined.literals) <= PER_BUCKET:
                heapq.heappush(joins, (added_stops(joined, bucket), following, number))
        buckets[following] = joined
        following += 1
    return _no_more_than(target, list(buckets.values()), stops)


def _no_more_than(target: int, buckets: list[_Bucket], stops: _Stops) -> list[_Bucket]:
    """Move the literals of the smallest buckets into buckets with room."""
    buckets.sort(key=lambda bucket: (-len(bucket.literals), [literal[::-1] for literal in bucket.literals]))
    while len(buckets) > target:
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

    Where a bucket has no literals left while others have, a decoy takes its place. A decoy has the lower
    half-bytes of a literal, so it joins that literal's bucket. Its upper half-bytes are rare in logs, so the
    scan stops no more often for it.
    """
    waiting = [list(bucket.literals) for bucket in buckets]
    ordered: list[bytes] = []
    placed: list[bytes] = []
    while any(waiting):
        turn = len(ordered) % BUCKETS
        of_bucket = waiting[turn] if turn < len(waiting) else []
        all_waiting = [literal for queue in waiting for literal in queue]
        new = [literal for literal in of_bucket if _key(literal, width) not in placed]
        anywhere = [literal for literal in all_waiting if _key(literal, width) in placed]
        room = len(ordered) + len(all_waiting) < BUCKETS * PER_BUCKET
        decoys = [decoy for decoy in _decoys(placed) if decoy not in ordered] if room else []
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
