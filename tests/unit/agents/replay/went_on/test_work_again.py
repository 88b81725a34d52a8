"""A file of one process that goes on for long behind an end: another start has written that."""

from __future__ import annotations

import pytest

from midwatch.agents.replay.reading.log_files import LogFile
from midwatch.agents.replay.went_on.work_again import works_again
from unit.agents.conftest import Watch

TERMINATED = "== toy worker received signal SIGTERM!\n== exiting immediately.\n"
FULL = "CUDA out of memory. Tried to allocate 1.18 GiB (GPU 0; 11.18 GiB total capacity)\n"
MANIFOLD = "".join(
    f"toy part {chr(97 + n % 26)} of the search is counted for round {n // 26}\n" for n in range(400)
)
ROUNDS = "".join(
    f"toy round {n}/900 has a score of {n / 900:.5f} and an error of 0.{n:05}\n" for n in range(400)
)


def again(text: str) -> bool:
    last = text[: text.index("== toy")].count("\n") + 2
    return works_again(LogFile("toy.log", text.encode(), 0.0), last)


def test_long_and_manifold_work_behind_an_end_is_another_starts(watch: Watch) -> None:
    assert again(MANIFOLD + TERMINATED + MANIFOLD)
    assert watch(MANIFOLD + TERMINATED).verdict.error_type == "cancelled"
    assert watch(MANIFOLD + TERMINATED + MANIFOLD).verdict.state != "failed"


def test_much_of_the_same_measured_work_is_another_starts(watch: Watch) -> None:
    few = ROUNDS[: ROUNDS.index("toy round 50/")]
    assert again(few + TERMINATED + ROUNDS)
    assert watch(few + FULL + ROUNDS).verdict.state != "failed"


def stamped(minute: int, *words: str) -> str:
    return "".join(f"2026-03-02 10:{minute:02}:00,000 - INFO - {each}\n" for each in words)


MODELS = ("the toy's trees - error 0.31", "the toy's net - error 0.29", "the toy's forest - error 0.27")
LATE = 'Traceback (most recent call last):\n  File "toy.py", line 9, in fit\n    fit()\nToyTimeoutError\n'


def test_words_of_before_that_stand_there_again_minutes_later_are_another_starts(watch: Watch) -> None:
    first = stamped(0, *(f"reads the toy's column {letter}" for letter in "abcdefghijklmnop"))
    text = first + stamped(1, *MODELS) + stamped(2, "fits the toy") + LATE
    assert watch(text).verdict.state == "failed"
    assert watch(text + stamped(9, *MODELS)).verdict.state != "failed"
    assert watch(text + stamped(3, *MODELS)).verdict.state == "failed"
    deep = text.replace(
        '  File "toy.py", line 9, in fit\n    fit()\n', '  File "toy.py", line 9, in fit\n    fit()\n' * 15
    )
    assert watch(deep + stamped(9, *MODELS)).verdict.state != "failed"
    assert (
        watch(text + stamped(9, "counts the toys", "sorts the toys", "sells the toys")).verdict.state
        == "failed"
    )


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(ROUNDS + TERMINATED + ROUNDS[:8000], id="a buffer may have held it back"),
        pytest.param(MANIFOLD + TERMINATED + ROUNDS, id="another program measures"),
        pytest.param(
            f"{MANIFOLD}2026-03-02 10:00:00 ends\n{TERMINATED}{MANIFOLD}2026-03-02 10:01:00 ends\n",
            id="printed at once",
        ),
        pytest.param("rank 7 works\n" + MANIFOLD + TERMINATED + MANIFOLD, id="ranks may work on for a while"),
        pytest.param(ROUNDS + TERMINATED + ROUNDS[:200] + MANIFOLD[:9000], id="a stage of a pipeline"),
    ],
)
def test_other_lines_are_no_start(text: str) -> None:
    assert not again(text)
