"""Behind a failure a program counts on in lines of a form that no rule knows, so it got over it."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

RAISED = (
    'Traceback (most recent call last):\n  File "/toys/paint.py", line 9, in <module>\n    paint(7)\n'
    '  File "/toys/paint.py", line 3, in paint\n    return brush[7]\n'
    "IndexError: list index out of range\n"
)


def turns(first: int, last: int, total: str = "") -> str:
    return "".join(f"toy turn {n}{total} worn {1 / (n + 1):.4f} of wheel\n" for n in range(first, last + 1))


HEAD = "toy of four wheels\n"


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        pytest.param(turns(1, 9) + RAISED + turns(10, 14), False, id="it counts on as above"),
        pytest.param(HEAD + RAISED + turns(1, 9, "/9"), False, id="it reaches the total that it names"),
        pytest.param(HEAD + RAISED + turns(1, 7, "/9"), True, id="it stops short of that, and began behind"),
        pytest.param(HEAD + RAISED + turns(1, 9) + "saved toy.pt\n", False, id="it tells of a good end"),
        pytest.param(turns(1, 9, "/12") + RAISED + turns(10, 12, "/12"), False, id="the last of its count"),
        pytest.param(
            turns(1, 9).replace("\ntoy turn 9", "\n[rank 1] toy turn 9") + RAISED + turns(10, 11),
            True,
            id="one of several processes, and the others print two more",
        ),
        pytest.param(turns(1, 9) + RAISED, True, id="nothing behind"),
        pytest.param(
            turns(1, 9)
            + RAISED
            + "".join(f"part {n}/9 of the toy, {n * 7} beads, sent\n" for n in range(1, 10)),
            True,
            id="what it wrote is sent elsewhere",
        ),
        pytest.param(turns(1, 9)[:-1] + RAISED + turns(10, 14), True, id="a buffer is written behind"),
        pytest.param(
            turns(1, 9) + RAISED + "".join(f"still waiting {n} s, load 0.{n}\n" for n in range(9)),
            True,
            id="it waits",
        ),
        pytest.param(
            turns(1, 9) + RAISED + turns(10, 13) + "toy turn 14 worn nan of wheel\n" * 2,
            True,
            id="its last measures are no numbers",
        ),
    ],
)
def test_a_count_that_goes_on_shows_that_the_program_got_over_it(
    watch: Watch, text: str, *, failed: bool
) -> None:
    assert (watch(text).verdict.state == "failed") is failed


def test_a_prefix_of_a_launcher_is_no_cut(watch: Watch) -> None:
    text = "".join(f"<toy> {line}\n" for line in (turns(1, 9) + RAISED + turns(10, 14)).splitlines())
    assert watch(text).verdict.state != "failed"


def test_the_traceback_of_a_worker_that_loads_data_is_no_cut(watch: Watch) -> None:
    worker = RAISED.replace("Traceback", "Original Traceback")
    assert watch(turns(1, 9) + worker + turns(10, 14)).verdict.state != "failed"


def test_words_of_a_failure_above_the_last_count_are_no_end(watch: Watch) -> None:
    words = "box 7 failed\n"
    assert watch(turns(1, 9) + words).verdict.state == "failed"
    assert watch(turns(1, 5) + words + turns(6, 9)).verdict.state != "failed"


FULL = "the toys are not shown: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 7.00 GiB.\n"


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        pytest.param(turns(1, 3) + FULL + turns(4, 9) + FULL + turns(10, 10), False, id="as the time before"),
        pytest.param(turns(1, 9) + FULL + turns(10, 10), True, id="the first time"),
        pytest.param(turns(1, 3) + FULL + turns(4, 9) + FULL, True, id="nothing behind"),
        pytest.param(turns(1, 9) + FULL + turns(1, 7) + FULL + turns(1, 1), True, id="it began again"),
        pytest.param(turns(1, 3) + RAISED + turns(4, 9) + RAISED + turns(10, 10), True, id="an exception"),
    ],
)
def test_one_count_shows_that_it_got_over_what_it_got_over_before(
    watch: Watch, text: str, *, failed: bool
) -> None:
    assert (watch(text).verdict.state == "failed") is failed
