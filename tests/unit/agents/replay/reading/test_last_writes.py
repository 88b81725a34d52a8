"""Files that print no time: their last write counts where it is their own, and else they have no order."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from midwatch.agents.detect.line_order import AT_ANY_TIME
from midwatch.agents.replay.reading.last_writes import in_printed_zone
from midwatch.agents.replay.reading.log_files import LogFile
from midwatch.agents.replay.replayed import Replayed
from midwatch.agents.replay.starts.appended_starts import replay_last
from unit.agents.replay.starts.test_appended_starts import OUT_OF_MEMORY, RAISED

At = Callable[..., Replayed]
BEGUN = 1_772_416_800.0  # 2026-03-02 02:00:00 in UTC, one second before the first step
ENDED = BEGUN + 80
LATE = (
    "[rank0]:[E302 02:12:00.114 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=9, NumelOut=9, Timeout(ms)=600000) ran for 600054 "
    "milliseconds before timing out.\n"
)


def steps(first: int, last: int, *, dated: bool = True) -> str:
    return "".join(
        (f"2026-03-02 02:{step // 60:02}:{step % 60:02},000 " if dated else "")
        + f"step: {step}  loss:  2.5\n"
        for step in range(first, last + 1)
    )


@pytest.fixture
def replay_at(watch_files: Callable[..., Replayed]) -> At:
    """Of files by their names, each with its text and its last write."""

    def replayed(**files: tuple[str, float]) -> Replayed:
        return replay_last(
            [LogFile(name, text.encode(), at) for name, (text, at) in files.items()], watch_files
        )

    return replayed


@pytest.mark.parametrize("copied", range(60, 900, 60))
def test_what_a_copied_file_ends_in_is_dropped_by_no_step_of_another(replay_at: At, copied: int) -> None:
    at = ENDED + copied
    done = replay_at(toy_err=(OUT_OF_MEMORY, at), toy_out=(steps(1, 80), at + 0.01))
    assert (done.verdict.error_type, done.decision.action) == ("oom", "stop")


@pytest.mark.parametrize("zone", [0, 3600, -7 * 3600, 19800])
def test_a_file_written_before_the_last_steps_is_over(replay_at: At, zone: int) -> None:
    done = replay_at(
        toy_err=(RAISED, BEGUN + 40 + zone),
        toy_out=(steps(1, 80), ENDED + zone),
        others=(steps(1, 80), ENDED + zone),
    )
    assert done.verdict.state == "healthy"
    done = replay_at(toy_err=(RAISED, ENDED + 1 + zone), toy_out=(steps(1, 80), ENDED + zone))
    assert done.verdict.error_type == "exception"


@pytest.mark.parametrize("minutes", range(4, 60, 5))
def test_no_hour_brings_an_old_file_to_the_end(replay_at: At, minutes: int) -> None:
    hour = steps(1, 80).replace(" 02:", " 03:")
    hour += f"2026-03-02 03:{minutes:02}:00,000 step: 81  loss:  2.5\n"
    done = replay_at(worker_err=(RAISED, BEGUN + 40), toy_out=(hour, BEGUN + 3600 + 60 * minutes))
    assert done.verdict.state == "healthy"


def test_without_a_clock_files_written_a_moment_apart_have_no_order(replay_at: At) -> None:
    text = steps(1, 80, dated=False)
    for apart in (0.004, 1.0):
        done = replay_at(toy_err=(RAISED, ENDED - apart), toy_out=(text, ENDED))
        assert done.verdict.error_type == "exception"
    assert replay_at(toy_err=(RAISED, ENDED - 600), toy_out=(text, ENDED)).verdict.state == "healthy"


def test_a_cause_of_unknown_time_explains_the_dated_waits_of_others(replay_at: At) -> None:
    at = ENDED + 1210
    files = {"rank0_err": (LATE, at), "rank3_err": (OUT_OF_MEMORY, at), "toy_out": (steps(1, 80), at)}
    assert replay_at(**files).verdict.error_type == "oom"
    assert replay_at(**dict(reversed(files.items()))).verdict.error_type == "oom"


def test_a_file_whose_first_lines_print_no_time_is_a_dated_one(replay_at: At) -> None:
    head = "the toys wind up\n" * 5000
    own = head + "2026-03-02 02:00:40,000 step: 40  loss:  2.5\n" + RAISED
    at = ENDED + 1210
    done = replay_at(rank1=(own, at), rank0=(steps(1, 80), at))
    assert done.verdict.state == "healthy"


@pytest.mark.parametrize(
    ("modified", "last", "expected"),
    [
        ([50.0, 100.0], [None, 99.0], [50.0, 100.0]),
        ([50.0, 4600.0], [None, 99.0], [-4450.0, 100.0]),
        ([4599.0, 4600.0], [None, 99.0], [99.0, 100.0]),
        ([50.0, 97.0], [None, 99.0], [50.0, 99.0]),  # the file server's clock lags
        ([50.0, 400.0], [None, 99.0], [AT_ANY_TIME] * 2),
        ([50.0, 100.0, 400.0], [None, 99.0, 380.0], [50.0, 100.0, 400.0]),
        ([50.0, 100.0, 400.0, 500.0], [None, 99.0, 40.0, 30.0], [AT_ANY_TIME] * 4),  # most were copied
    ],
)
def test_the_zone_is_that_of_most_files(
    modified: list[float], last: list[float | None], expected: list[float]
) -> None:
    assert in_printed_zone(modified, last) == expected


def test_times_a_moment_apart_are_one() -> None:
    assert in_printed_zone([5.0, 1.0, 9.0, 3.0], [None] * 4) == [5.0, 5.0, 9.0, 5.0]
    assert in_printed_zone([], []) == []
