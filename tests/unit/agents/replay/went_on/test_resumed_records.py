"""A program that prints an exception in a record of its own, and goes on with such records, got over it."""

from __future__ import annotations

import pytest

from midwatch.agents.replay.reading.log_files import LogFile
from midwatch.agents.replay.went_on.resumed_records import resumes_records
from unit.agents.conftest import Watch

FAILED = 'toy 17 box 4: "no space left on device"\n'
LOST = "toy 17 box 4: RuntimeError: CUDA error: out of memory\n"


def boxes(first: int, last: int) -> str:
    return "".join(f"toy {n} box 4: painted {n} wheels\n" for n in range(first, last + 1))


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        pytest.param(boxes(1, 16) + LOST + boxes(18, 21), False, id="such records go on"),
        pytest.param(boxes(1, 16) + LOST + boxes(18, 19), True, id="two more may be another's"),
        pytest.param(boxes(1, 16) + LOST, True, id="nothing behind"),
        pytest.param(
            boxes(1, 16).replace("toy", "rank") + LOST.replace("toy", "rank") + boxes(18, 21),
            True,
            id="a rank",
        ),
        pytest.param(boxes(1, 16) + LOST.partition(": ")[2] + boxes(18, 21), True, id="no record of its own"),
    ],
)
def test_records_that_go_on_show_that_the_program_got_over_it(
    watch: Watch, text: str, *, failed: bool
) -> None:
    assert (watch(text).verdict.state == "failed") is failed


MESSAGE = ("toy 7 has no axle", " [[wheel 7]]", "", " the build of toy 7", " [[box 7]]")


def logged(*lines: str) -> str:
    return "".join(f"E0302 11:52:40.118290 4188 toy_runner.py:77] {line}\n" for line in lines)


def resumes(text: str) -> bool:
    return resumes_records(LogFile("toy.log", text.encode(), 0.0), len(MESSAGE) + 1)


def test_the_rest_of_its_own_message_is_no_such_record() -> None:
    painted = tuple(f"paints toy {n}" for n in (1, 2, 3, 4))
    failed = ("toys.BuildError: " + MESSAGE[0], *MESSAGE[1:])
    assert not resumes(logged(*MESSAGE, *failed))
    assert resumes(logged(*painted, "none", *failed, *painted))


def test_a_message_of_several_lines_that_is_printed_twice_is_no_such_record() -> None:
    def record(line: str) -> str:
        return f"[run.py:77] 11:52:40 {line}\n"

    message = ("toys.BuildError: toy 7 has no axle", "see shelf 7", "ask for toy 8", "paint 9 wheels")
    twice = "".join(map(record, (*message, *message)))
    again = twice + "".join(map(record, message[1:]))
    ends = (LogFile("toy.log", text.encode(), 0.0) for text in (twice, again))
    assert [resumes_records(each, len(message) + 1) for each in ends] == [False, True]


def test_the_records_of_other_workers_show_nothing_of_this_one() -> None:
    def record(worker: int, text: str) -> str:
        return f"(Worker pid={worker}) ERROR 03-02 11:52:40 [toys.py:77] {text}\n"

    frames = [f'  File "/toys/box_{n}.py", line {n}7, in paint' for n in range(5)]
    traceback = ("paint failed.", "Traceback (most recent call last):", *frames)
    own = "".join(record(7, line) for line in traceback) + record(7, "ToyError: no paint")
    other = "".join(record(8, line) for line in traceback)
    more = "".join(record(7, f"box {n} is painted") for n in range(7))
    last = len(traceback) + 1
    assert not resumes_records(LogFile("toy.log", (own + other).encode(), 0.0), last)
    assert resumes_records(LogFile("toy.log", (more + own + more).encode(), 0.0), last + 7)
