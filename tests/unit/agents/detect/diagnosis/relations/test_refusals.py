"""A program that refuses its command line ends there. What fails long after is another program's."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch
from unit.agents.detect.diagnosis.test_cascades import frames

REFUSED = "usage: toy.py [-h] [--shards N]\ntoy.py: error: unrecognized arguments: --wings 2\n"
RAISED = frames("KeyError: 'wings'") + "\n"
WORK = "".join(f"toy.layer.{number} is built\n" for number in range(60))


def test_what_fails_long_behind_a_refused_command_line_is_of_another_program(watch: Watch) -> None:
    assert watch(REFUSED + WORK + RAISED).verdict.root_line == "KeyError: 'wings'"
    assert watch(REFUSED + WORK[: len(WORK) // 2] + RAISED).verdict.error_type == "config"
    assert watch(REFUSED + WORK + RAISED + REFUSED).verdict.error_type == "config"


@pytest.mark.parametrize("front", ["", "[rank{}]: "])
def test_a_refusal_in_other_words_is_of_the_next_start(watch: Watch, front: str) -> None:
    first, later = (
        "toy.py: error: argument --mode: invalid choice: '{MODE}'",
        "toy.py: error: argument --n: 7",
    )
    assert watch(f"{first}\n{later}\n").verdict.root_line == later
    ranks = "".join(front.format(rank) + first + "\n" for rank in range(3))
    assert watch(ranks).verdict.root_line_number == 1
    of_each = "".join(f"toy.py: error: unrecognized arguments: --local-rank={rank}\n" for rank in range(3))
    assert watch(of_each).verdict.root_line_number == 1
