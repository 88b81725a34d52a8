"""What one item of a loop met ends nothing, if the loop took the next ones."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

MET = "[{n}/70] toy{n}_A... \u274c Error: CUDA out of memory. Tried to allocate 41.00 MiB. G...\n"
TOOK = "[{n}/70] toy{n}_A... \u2705 Loss: 4188.1\n"
STAMPED = "2026-03-02 11:52:40,118 - INFO - "


def items(form: str, *numbers: int) -> str:
    return "".join(form.format(n=n) for n in numbers)


@pytest.mark.parametrize(
    "text",
    [
        items(MET, 1) + items(TOOK, 2, 3),
        items(MET, 1, 2, 3) + items(TOOK, 4),
        items(TOOK, 1, 2) + items(MET, 3) + "  a toy was left out\n" + items(TOOK, 4),
        items(STAMPED + MET, 69) + items(STAMPED + TOOK, 70),
        items(MET, 69, 70) + "validation\n[1/42] toy1_A... done\n" + items(MET, 1) + items(TOOK, 2),
    ],
    ids=["the first", "several", "with a line between", "the last but one", "the last of a round"],
)
def test_an_item_behind_which_the_loop_took_another_ended_nothing(watch: Watch, text: str) -> None:
    assert watch(text).verdict.state != "failed"


def test_what_a_loop_got_over_three_times_it_gets_over_where_the_lines_end(watch: Watch) -> None:
    above = "".join(items(MET, n) + items(TOOK, n + 1) for n in (1, 3, 5))
    assert watch(above + items(MET, 7)).verdict.state != "failed"
    assert watch(above.partition("[3/")[0] + items(MET, 3)).verdict.error_type == "oom"
    raised = 'Traceback (most recent call last):\n  File "toy.py", line 7, in <module>\n    toy()\n'
    assert watch(above + items(MET, 7) + raised + "ValueError: the toy broke\n").verdict.state == "failed"


@pytest.mark.parametrize(
    "text",
    [
        items(TOOK, 1, 2) + items(MET, 3, 4, 5),
        items(TOOK, 1, 2) + items(MET, 3),
        items(MET, 3) + items(TOOK, 5),
        items(MET, 3) + items(TOOK, 3),
        (items(MET, 3) + items(TOOK, 4)).replace("/70", "/8"),
        (items(MET, 3) + items(TOOK, 4)).replace("/70]", "/70 ]"),
    ],
    ids=["all that follow fail", "nothing behind it", "one is left out", "the same again", "ranks", "a bar"],
)
def test_a_failure_that_no_item_behind_it_got_over_counts(watch: Watch, text: str) -> None:
    assert watch(text).verdict.error_type == "oom"


def test_numbers_that_broke_while_items_had_failed_are_the_cause(watch: Watch) -> None:
    broke = "[{n}/70] toy{n}_A... \u2705 Loss: nan\n"
    text = items(MET, 1) + items(TOOK, 2, 3) + items(broke, 4, 5) + items(MET, 6) + items(broke, 7, 8, 9)
    done = watch(text)
    assert done.verdict.error_type == "numerical_instability"
    assert done.verdict.root_line == items(broke, 4).strip()
