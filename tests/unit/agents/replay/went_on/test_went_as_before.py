"""An evaluation that catches an item's exception goes on with the next, in lines like those above."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

CAUGHT = """!! error on toy 40: it took too long
Traceback (most recent call last):
  File "/toys/judge.py", line 77, in judge
    answer = ask(toy)
  File "/toys/judge.py", line 41, in ask
    raise ReadTimeout("toyhost did not answer")
httpx.ReadTimeout: toyhost did not answer
"""
UNCAUGHT = CAUGHT.replace("in judge", "in <module>")
JUDGED = """!! error on toy 40: its code does not run
  ran: File "/var/folders/w7/toy/T/tmp7ab_x9zq.py", line 3
    paint the toy
          ^^^
SyntaxError: invalid syntax
"""


def items(first: int, last: int) -> str:
    return "".join(
        f"==== sample toy_{n} (idx={n}) ====\n"
        f"  reads the leaflet of the toy from its first page on, leaflet {n} with its pages\n"
        f"  -> found by {n} rounds: {'wheel ' * (n % 5)}{'axle ' * (n % 7)}\n"
        f"  compares keys=['{n}', '{n + 1}'] with the shelf\n"
        f"  -> answer: {'red ' * (n % 4)}toy {n}\n\n"
        for n in range(first, last)
    )


MANY, FEW = items(41, 85), items(41, 66)


@pytest.mark.parametrize(
    ("log", "failed"),
    [
        pytest.param(items(0, 40) + CAUGHT + MANY, False, id="the next items follow"),
        pytest.param(items(0, 40) + JUDGED + MANY, False, id="of code that the program judged"),
        pytest.param(items(0, 40) + CAUGHT + FEW, True, id="so much may a buffer have held back"),
        pytest.param(items(0, 40) + UNCAUGHT + MANY, True, id="nothing caught it"),
        pytest.param(items(0, 1) + CAUGHT + MANY, True, id="hardly an item stands above"),
        pytest.param("rank 3 begins\n" + items(0, 40) + CAUGHT + MANY, True, id="another rank's items"),
        pytest.param(items(0, 40) + CAUGHT + "puts the toys away\n" * 500, True, id="other lines"),
    ],
)
def test_items_that_follow_as_before_show_that_the_program_went_on(
    watch: Watch, log: str, *, failed: bool
) -> None:
    assert (watch(log).verdict.state == "failed") is failed


def test_a_buffer_holds_less_than_the_items_that_follow() -> None:
    assert len(FEW.encode()) < 8192 < len(MANY.encode())
