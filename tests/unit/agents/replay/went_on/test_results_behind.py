"""A program that prints on behind its last exception, up to its results, got over it."""

from __future__ import annotations

import pytest

from midwatch.agents.replay.reading.log_files import LogFile
from midwatch.agents.replay.went_on.results_behind import has_results_behind
from unit.agents.conftest import Watch

CASES = "".join(f"box {n:02d} of the attic: {n % 7} toys\n" for n in range(1, 12))
RAISED = (
    "Traceback (most recent call last):\n"
    '  File "/toys/count.py", line 31, in <module>\n'
    "    print(shelf[box])\n"
    "KeyError: 'lid'\n"
)
CAUGHT = RAISED.replace("in <module>", "in look_into")
MORE = "box 12 of the attic: 5 toys\n"
TOLD = "attic.csv: mean 3.18 toys over 12 boxes\n"


def behind(text: str) -> bool:
    """Whether results stand behind the last line of the text that names the `KeyError`."""
    number = max(at for at, line in enumerate(text.splitlines(), 1) if "KeyError" in line)
    return has_results_behind(LogFile("log", text.encode(), 0.0), number)


@pytest.mark.parametrize(
    "end",
    [
        "mean 3.18 toys\n",
        "best box: 7\n",
        "wrote attic.csv\n",
        "12 boxes measured, 0 untold errors\n",
        "Ran 12 tests in 3.183s\n\nOK (skipped=1)\n",
        "attic.csv 4711\n",
        "lid   1.50\npaw   0.25\near   2.75\ntail  1.25\n",
        '{"recall": 0.75, "boxes": 12}\n',
        "mean 3.18 toys\n\nreal\t0m7.000s\nuser\t0m5.899s\nsys\t0m1.513s\n",
        "12 of 12 boxes have toys\n",
    ],
)
def test_results_in_a_form_of_their_own_behind_lines_as_before(end: str) -> None:
    assert behind(CASES + RAISED + MORE + end)


@pytest.mark.parametrize(
    "end",
    [
        "",  # more of the same is no result: another process may print it
        "mean 3.18 toys\ncount.py exited with status 1\n",
        "mean nan toys\n",
        "best box so far: 7, stopped after an error\n",
        "rounds with toys: 5 of 12\nmean 3.18 toys\n",
        "lid   -\npaw   -\near   -\ntail  -\n",
        "total counting time: 0:00:15 (0:00:00 on 2 hooks)\n",  # printed however it ended
    ],
)
def test_no_result_or_one_that_is_none(end: str) -> None:
    assert not behind(CASES + RAISED + MORE + end)


def test_a_traceback_may_be_drawn_into_a_box() -> None:
    boxed = (
        "╭───── Traceback (most recent call last) ─────╮\n"
        "│ /toys/count.py:31 in look_into              │\n"
        "│ ❱ 31 │   print(shelf[box])                  │\n"
        "╰─────────────────────────────────────────────╯\n"
        "KeyError: 'lid'\n"
    )
    assert behind(CASES + boxed + MORE + TOLD)
    assert not behind(CASES + boxed + "another program's line\n" + TOLD)


def test_what_stands_behind_may_be_of_the_shell_that_goes_on() -> None:
    assert not behind(CASES + RAISED + TOLD)
    assert not behind(CASES + RAISED + "+ python report.py\n" + TOLD)


def test_a_handler_that_prints_the_exception_goes_on_itself() -> None:
    assert behind(CASES + CAUGHT + TOLD)
    assert not behind(CASES + CAUGHT + "the attic is lost\n" + TOLD * 4)


def test_a_program_that_got_over_one_before_gets_over_the_last() -> None:
    assert behind(CASES + RAISED + MORE + RAISED + TOLD)


def test_a_buffer_that_is_written_behind_the_end_proves_nothing() -> None:
    half = len(CASES) // 2 + 5
    assert not behind(CASES[:half] + RAISED + CASES[half:] + MORE + TOLD)


def test_a_record_that_names_an_exception_as_others_above_it() -> None:
    record = "!! box {} of the attic cannot be read: KeyError 'lid'\n"
    records = "".join(f"box {n} read\n" + record.format(n) for n in range(1, 6))
    assert behind(records + "box 6 read\n" + TOLD)
    assert not behind(record.format(1) + "box 2 read\n" + TOLD)


def test_such_a_log_shows_no_failure(watch: Watch) -> None:
    done = watch(CASES + RAISED + MORE + TOLD)
    assert done.verdict.state != "failed"
    assert "up to its results" in done.assumed[-1]
    assert watch(CASES + RAISED).verdict.state == "failed"
    ended = watch(CASES + RAISED + "srun: error: n4: task 0: Exited with exit code 1\n" + MORE + TOLD)
    assert ended.verdict.state == "failed"


def test_a_child_that_crashed_ended_only_itself(watch: Watch) -> None:
    crash = "box process 7 died: Segmentation fault\n"
    assert watch(CASES + crash + MORE + RAISED + MORE + TOLD).verdict.state != "failed"


def test_make_ignores_the_failure_of_a_command_that_may_fail(watch: Watch) -> None:
    steps = "".join(f"step {n} loss {3 - n / 50:.3f}\n" for n in range(1, 31))
    made = "make: *** [toys.mk:7: tell] Error 1"
    assert watch(f"{steps}{RAISED}{made} (ignored)\n").verdict.state == "healthy"
    assert watch(f"{steps}{RAISED}{made}\n").verdict.state == "failed"
    assert watch(f"{steps}{made} (ignored)\n").verdict.state == "healthy"


def test_a_row_of_the_last_table_may_tell_of_a_failure() -> None:
    scored = "rank  box    mean\n   1  lid    3.50\n   2  paw    2.25\n   3  ear    1.75\n"
    table = scored + "   -  tail     -   ValueError\n"
    assert behind(CASES + RAISED + MORE + table)
    assert not behind(CASES + RAISED + MORE + table.replace("3.50", "-").replace("2.25", "-"))


def test_the_last_line_may_be_one_number_or_a_file() -> None:
    assert behind(CASES + RAISED + MORE + "88.3\n")
    assert behind(CASES + RAISED + MORE + "attic.pgm\n")
    assert not behind(CASES + RAISED + MORE + "attic.log\n")


def test_a_notebook_s_next_cells_run_behind_a_cell_that_failed(watch: Watch) -> None:
    cell = "In [{}]:\n    toys[{}]\n"
    raised = (
        "KeyError                          Traceback (most recent call last)\n"
        "  File \"<ipython-input-7>\", line 1, in <module>\n\nKeyError: 'lid'\n"
    )
    cells = "".join(cell.format(n, n) for n in range(1, 5))
    text = cells + raised + cell.format(5, 5) + raised + cell.format(6, 6) + "attic.pgm\n"
    assert watch(text).verdict.state != "failed"
    assert watch(cells + raised).verdict.state == "failed"


def test_an_exception_s_message_may_have_more_lines_and_a_judge_may_indent_it() -> None:
    more = RAISED + "\tof the 7th shelf, and no KeyError before\n"
    assert behind(CASES + more + MORE + TOLD)
    indented = "".join(f"  {line}\n" for line in RAISED.splitlines())
    assert behind(CASES + indented + MORE + TOLD)


def test_an_exception_in_the_middle_of_an_indented_first_line_has_no_records_above() -> None:
    assert not behind("  0: the lid was lost: KeyError\n" + CASES + TOLD)


@pytest.mark.parametrize(
    ("heading", "results"),
    [
        ("2026-03-02 11:52:40,118 - ERROR - box 12 of the attic has no lid\n", True),
        ("2026-03-02 11:52:40,118 - ERROR - Fatal error in the count of the attic: 'lid'\n", False),
        ("2026-03-02 11:52:40,118 - ERROR - Unhandled exception: 'lid'\n", False),
    ],
)
def test_what_the_outermost_handler_calls_fatal_has_no_results_behind_it(heading: str, results: bool) -> None:
    assert behind(CASES + heading + CAUGHT + "the count is done\n" + TOLD) is results


PROBE = RAISED.replace('"/toys/count.py", line 31', '"<string>", line 1')
SPAWNED = PROBE.replace(
    "    print(shelf[box])\n", '  File "/py/multiprocessing/spawn.py", line 9, in spawn_main\n'
)


@pytest.mark.parametrize(
    ("text", "results"),
    [
        (PROBE + CASES + TOLD, True),
        (PROBE + CASES + "count.py exited with status 1\n", False),
        (PROBE + CASES + "the stage failed\n" + TOLD, False),
        (CASES + PROBE + "the code for box 11 crashed\n" + MORE * 3 + TOLD, True),
        (SPAWNED + CASES + TOLD, False),
        (RAISED + CASES + TOLD, False),
    ],
)
def test_behind_one_line_of_python_a_script_goes_on_with_its_next_program(text: str, results: bool) -> None:
    assert behind(text) is results
