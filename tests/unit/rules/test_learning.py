"""A worker's literals: rare in the lines that it is given, and never a reason to find something else."""

from __future__ import annotations

import random
import time
from itertools import accumulate, count, cycle

import pytest

from house.cases import cases
from midwatch.rules.compiler import compile_rules
from midwatch.rules.learning import FIRST_LOOK, KEPT, PassingLines, better_choice, choice_for, fastest
from midwatch.rules.model import Rule

RULES = (Rule(name="lost", pattern=r"carrier .{1,20} rudder"),)
CARRIERS = b"the carrier of rank 5 is well\n" * cases(5000)
RUDDERS = b"the rudder of rank 7 is well\n" * cases(5000)
LOST = b"carrier 5 has no rudder\n"


def passed(text: bytes) -> tuple[bytes, ...]:
    passing = PassingLines()
    while not passing.take(text):
        pass
    return passing.chunks()


def test_literals_are_chosen_for_the_lines_that_go_by() -> None:
    known = choice_for(RULES, passed(RUDDERS))
    better = better_choice(RULES, known, passed(CARRIERS), time.thread_time)
    assert all(spelling in b"carrier " for spelling in known.triggers.spellings)
    assert all(spelling in b" rudder" for spelling in better.triggers.spellings)
    for choice in (known, better):
        found = compile_rules(RULES, choice=choice).match_chunk(CARRIERS + LOST + RUDDERS)
        assert [hit.line + b"\n" for hit in found] == [LOST]


def test_what_is_not_faster_is_not_taken() -> None:
    known = choice_for(RULES, passed(RUDDERS))
    no_difference = map(float, count())
    assert better_choice(RULES, known, passed(CARRIERS), lambda: next(no_difference)) is known
    assert better_choice(RULES, known, (), time.thread_time) is known


def test_a_line_in_vain_weighs_as_much_as_makes_the_matching_fastest() -> None:
    known = choice_for(RULES, passed(RUDDERS))

    def taken(*seconds: int) -> float:
        ticks = accumulate(step for spent in cycle(seconds) for step in (0, spent))
        return better_choice(RULES, known, passed(CARRIERS + RUDDERS), lambda: next(ticks)).triggers.cost

    assert taken(3, 1, 2) < taken(3, 2, 1)


def test_what_is_faster_is_taken_on_a_machine_whose_speed_changes_all_the_time() -> None:
    taken = []
    for seed in range(100):
        noise = random.Random(seed)
        turns = [
            [[way * noise.lognormvariate(0, 0.15) for way in (1.0, 0.9)] for _ in range(KEPT)]
            for _ in range(6)
        ]
        taken.append(fastest(turns))
    assert sum(taken) >= 97


def test_what_makes_a_quarter_slower_is_not_taken_even_if_the_rest_gains() -> None:
    assert fastest([[(1.0, 0.8), (1.0, 0.8), (1.0, 0.8), (1.0, 1.2)] * 8] * 6) == 0
    assert fastest([[(1.0, 0.8), (1.0, 0.8), (1.0, 0.8), (1.0, 1.05)] * 8] * 6) == 1


def test_it_is_looked_for_again_after_four_times_as_many_lines() -> None:
    passing = PassingLines()
    chunk = bytes(FIRST_LOOK // 4)
    assert [number for number in range(1, 70) if passing.take(chunk)] == [4, 16, 64]


@pytest.mark.parametrize("size", [500, 1 << 18])
def test_few_chunks_of_all_that_went_by_are_kept(size: int) -> None:
    passing = PassingLines()
    chunks = 60 * (1 << 20) // size
    for number in range(chunks):
        passing.take(b"chunk %d says a word\n" % number * (size // 24))
    kept = passing.chunks()
    seen = [int(chunk.split(b" ", 2)[1]) for chunk in kept]
    assert min(seen) < chunks / 2 < max(seen)
    assert len(set(seen)) == len(seen) == KEPT
