"""Packing: every literal in one automaton, none larger than what the library scans fast."""

from __future__ import annotations

import random

import pytest

from midwatch.rules.prefilter.packing import BUCKETS, PER_BUCKET, pack


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 31, 32, 33, 63, 65, 200])
def test_every_literal_is_packed_once_into_small_automata(count: int) -> None:
    rng = random.Random(count)
    literals = {bytes(rng.choices(b"abcdefgh NCL", k=rng.choice((3, 4, 4, 5, 8)))) for _ in range(count)}
    packed = pack(literals, b"a sample of lines to weigh them by\n" * 40)
    assert sorted(
        literal for together in packed for literal in together if min(literal) >= ord(" ")
    ) == sorted(literals)
    assert all(0 < len(together) <= BUCKETS * PER_BUCKET for together in packed)
    assert len(packed) <= -(-count // (BUCKETS * PER_BUCKET)) + 1


def test_short_literals_do_not_share_an_automaton_with_long_ones() -> None:
    packed = pack([b"nan", b"inf", b"killed", b"died"], b"")
    assert [sorted(together) for together in packed] == [[b"inf", b"nan"], [b"died", b"killed"]]


def test_literals_alike_in_their_lower_half_bytes_share_a_bucket() -> None:
    words = [letter * 4 for letter in "abcdefghijklmnop"]
    (packed,) = pack([w.encode() for word in words for w in (word, word.upper())], bytes(range(256)) * 8)
    bucket: dict[bytes, int] = {}
    for place, literal in enumerate(packed):
        bucket.setdefault(literal.lower(), place % BUCKETS)
    assert sorted(list(bucket.values()).count(number) for number in range(BUCKETS)) == [2] * BUCKETS


def test_a_bucket_with_many_literals_keeps_them_beside_buckets_with_few() -> None:
    rng = random.Random(1)
    family = {b"abca", b"abcb", b"abcd", b"abce"}
    alone = {b"hgfe", b"ddba", b"gehc", b"bfah", b"chde", b"fafg", b"eecf"}
    (packed,) = pack(family | alone, bytes(rng.choices(b"abcdefgh", k=1 << 17)))
    bucket: dict[bytes, int] = {}
    for place, literal in enumerate(packed):
        bucket.setdefault(bytes(byte & 15 for byte in literal[:4]), place % BUCKETS)
    of_literal = {literal: bucket[bytes(byte & 15 for byte in literal)] for literal in family | alone}
    assert len({of_literal[literal] for literal in family}) == 1
    assert sorted(of_literal[literal] for literal in alone) == sorted(
        set(range(BUCKETS)) - {of_literal[literal] for literal in family}
    )
    assert len(packed) <= BUCKETS * PER_BUCKET


def test_the_same_literals_are_packed_the_same_way() -> None:
    literals = [b"%04d" % number for number in range(50)]
    assert pack(literals, b"1234" * 500) == pack(reversed(literals), b"1234" * 500)
