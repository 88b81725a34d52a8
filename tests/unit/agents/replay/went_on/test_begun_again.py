"""A script calls one program again and again. A run that fails in front of one that works ends nothing."""

from __future__ import annotations

import pytest

from midwatch.agents.replay.reading import log_files
from midwatch.agents.replay.reading.log_files import LogFile
from midwatch.agents.replay.went_on.begun_again import begun_again
from unit.agents.conftest import Watch

FAILED = """Traceback (most recent call last):
  File "toy_sweep.py", line 7, in <module>
    main()
  File "toy_sweep.py", line 4, in main
    raise TypeError("not a toy")
TypeError: not a toy
"""
HEAD = "kind of toy: forest, locked: True\n"
LAST = len((HEAD + HEAD + FAILED).splitlines())


def measured(times: int) -> str:
    return "".join(f" painting took {n}.25 s\n painted well: 0.9{n}\n" for n in range(times))


def behind(*parts: str) -> bool:
    text = HEAD + " painting took 7.25 s\n" + HEAD + FAILED + "".join(parts)
    return begun_again(LogFile("toy.log", text.encode(), 0.0), LAST + 1)


def test_a_run_that_gets_past_the_place_is_another_one(watch: Watch) -> None:
    assert behind(HEAD, measured(6))
    sweep = HEAD + measured(2) + HEAD + FAILED + HEAD + measured(6)
    assert watch(sweep).verdict.state != "failed"


def test_a_file_too_large_to_be_searched_for_ranks_may_have_many(monkeypatch: pytest.MonkeyPatch) -> None:
    assert behind(HEAD, measured(6))
    for most in ("_MOST_AT_ONCE", "_MOST_OF_AN_END"):
        monkeypatch.setattr(log_files, most, 64)
    assert not behind(HEAD, measured(6))


def test_a_run_that_wrote_its_exception_to_a_logger_and_ended_there_is_another_one(watch: Watch) -> None:
    start = "".join(
        f"2026-03-02 11:52:{{0}} - toys.{name} - INFO - {words}\n"
        for name, words in (("run", "toys of the forest"), ("run", "kind: locked"), ("paint", "mixing paint"))
    )
    logged = "2026-03-02 11:52:09 - __main__ - ERROR - forest failed\n"
    own = FAILED.replace("in <module>", "in main").replace("in main\n    raise", "in paint\n    raise")
    rest = "".join(
        f"2026-03-02 11:5{n}:41 - toys.{kind} - INFO - {kind} of {n} toys\n"
        for n in range(3, 7)
        for kind in ("sanding", "painting", "drying", "packing")
    )
    text = start.format("07") + logged + own
    assert watch(text + start.format(31) + rest).verdict.state != "failed"
    assert watch(text + start.format(31)).verdict.state == "failed"


def test_a_run_that_has_hardly_begun_shows_nothing() -> None:
    assert not behind(HEAD)
    assert not behind(HEAD, measured(2))
    assert not behind(HEAD, "the toy is fetched\n" * 20)  # no measure


def test_lines_of_an_epilog_are_no_run() -> None:
    assert not behind("the toys are put away\n" * 20)
    assert not behind(measured(8))  # the head is missing


def test_a_run_that_changed_its_words_must_print_much_that_is_new() -> None:
    start = "the toys are found\nthe paint is mixed\nbrush 7 is taken\n"
    text = f"{start}3 toys fit\n{FAILED}"
    last = len(text.splitlines())

    def goes_on(more: str) -> bool:
        return begun_again(LogFile("toy.log", (text + more).encode(), 0.0), last)

    new = "".join(
        f"{kind} toy {n}\n" for n in range(4) for kind in ("sanding", "painting", "drying", "packing")
    )
    assert goes_on(f"{start}2 toys fit, 1 does not\n{new}")
    assert not goes_on(f"{start}2 toys fit, 1 does not\n" + "painting toy\n" * 20)
    assert not goes_on(f"{start}2 toys fit, 1 does not\n")


def test_where_many_processes_write_the_lines_may_be_another_rank_s() -> None:
    assert not behind(HEAD, measured(6), "rank 3 waits\n")


def test_a_program_that_only_tells_of_an_exception_has_not_ended() -> None:
    text = HEAD + "TypeError: not a toy\n" + HEAD + measured(6)
    assert not begun_again(LogFile("toy.log", text.encode(), 0.0), 2)


def test_the_stack_of_an_abort_that_stood_above_too_is_no_run() -> None:
    def stack(at: str) -> str:
        frames = "".join(
            f"/opt/toys/libpaint.so.{n}(+0x2{n}af) [0x7f{kind}{at}]\n" for n, kind in enumerate("abcdef")
        )
        return f"Toy paint dried up in brush.c:72\nLeaving the room\nStack:\n{frames * 2}"

    failed = HEAD + FAILED + stack("e1")
    last = len((failed + HEAD + FAILED).splitlines())
    text = failed + HEAD + FAILED + stack("ce")
    assert not begun_again(LogFile("toy.log", text.encode(), 0.0), last)


def test_where_the_op_was_made_is_no_further_run() -> None:
    def frames(*kinds: str) -> str:
        return "".join(
            f'  File "/opt/python3.6/{kind}.py", line {n}, in <module>\n    return {kind}(brush)\n'
            for n, kind in enumerate(kinds)
        )

    begun, made = ("shelf", "box", "lid"), ("wheel", "paint", "brush", "lacquer", "sand", "glue")
    failed = HEAD + f"Traceback (most recent call last):\n{frames(*begun, 'dry')}TypeError: not a toy\n"
    text = failed + failed + f"\nOriginal stack trace for 'toy/paint':\n{frames(*begun, *made)}"
    last = len((failed + failed).splitlines())
    assert not begun_again(LogFile("toy.log", text.encode(), 0.0), last)
