"""Steps in a form that no rule knows are read from the file, and count as a training's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unit.agents.conftest import Watch

LOST = "ConnectionResetError: [Errno 104] Connection reset by peer\n"
RAISED = (
    'Traceback (most recent call last):\n  File "/toys/paint.py", line 9, in <module>\n    ask(7)\n' + LOST
)


def turns(first: int, last: int, form: str = "({n}/700) wear_loss {loss:.4f}") -> str:
    return "".join(form.format(n=n, loss=1 / n, epoch=n // 7) + "\n" for n in range(first, last + 1))


@pytest.mark.parametrize(
    "form",
    [
        "({n}/700) wear_loss {loss:.4f}",
        "I 08:00:{n:02} turn {n} | wear {loss:.3f} | rewards -{loss:.4f}",
        "E{epoch} {n:02}/700 bce {loss:.4f}",
        "2026-03-02 08:00:00,7 - INFO - toys - {n} xent={loss:.3e} at 7 wheels",
    ],
)
def test_a_program_that_trained_may_start_again(watch: Watch, form: str) -> None:
    assert watch(turns(1, 30, form) + RAISED).decision.action == "restart"


@pytest.mark.parametrize(
    "form",
    [
        "class {n} auc {loss:.4f}",  # a list
        "still waiting, try {n}, err {loss:.4f}",
        "eval {n} loss {loss:.4f}",
        "({n}/700) wheels {loss:.4f}",  # no measure of a training
        "turn 7 wear_loss {loss:.4f}",  # nothing rises
    ],
)
def test_other_lists_of_numbers_are_no_training(watch: Watch, form: str) -> None:
    assert watch(turns(1, 30, form) + RAISED).decision.action != "restart"


def test_a_failure_that_the_count_outlives_is_not_the_root(watch: Watch) -> None:
    bug = RAISED.replace(LOST, "KeyError: 'wheel'\n")
    done = watch(turns(1, 30) + RAISED + turns(31, 60) + bug)
    assert done.verdict.root_line == "KeyError: 'wheel'"


def test_steps_that_a_rule_knows_stay_the_steps(watch: Watch) -> None:
    known = "".join(f"step {n} loss {1 / n:.4f}\n" for n in range(1, 31))
    assert watch(known + turns(500, 530) + RAISED).verdict.step == 30


ANYTHING = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@given(before=ANYTHING, between=ANYTHING, behind=ANYTHING)
def test_whatever_stands_between_the_numbers_is_no_error(
    watch: Watch, before: str, between: str, behind: str
) -> None:
    lines = (f"{before} {n} loss {1 / n:.4f} {between} {n * 7} {behind}\n" for n in range(1, 12))
    assert watch("".join(lines)).job == "replay:file/log"
