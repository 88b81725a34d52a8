"""A start behind a failure is known by the time it prints, or by the words of Paddle's ranks."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

HEAD = (
    "/toy/lib/layers.py:26: DeprecationWarning: `np.int` is an old alias\n"
    "Deprecated in NumPy 1.20; see the release notes of the toy\n"
    "Some settings of the toy are taken from its defaults\n"
)
MISSING = (
    'Traceback (most recent call last):\n  File "tools/eval.py", line 71, in <module>\n    main()\n'
    "AssertionError: Given toy best.pdparams not exist.\n"
)
SAYS = "[{day} 19:{minute}:30] root INFO: Architecture : toy\n"
METRICS = "".join(f"the toy's metric {name} is printed\n" for name in ("acc", "recall", "precision"))


def dated(minute: int, day: str = "2026/03/02") -> str:
    return HEAD + SAYS.format(day=day, minute=minute)


@pytest.mark.parametrize("day", ["2026/03/02", "2026-03-02"])
def test_a_start_that_prints_a_later_time_is_another(watch: Watch, day: str) -> None:
    done = watch(dated(10, day) + MISSING + dated(12, day) + METRICS)
    assert (done.verdict.state != "failed", done.decision.action) == (True, "none")
    assert [each.verdict.error_type for each in done.earlier] == ["exception"]


def test_each_start_is_compared_with_the_one_before(watch: Watch) -> None:
    done = watch(dated(10) + MISSING + dated(12) + MISSING + dated(14) + METRICS)
    assert len(done.earlier) == 2
    assert done.verdict.state != "failed"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(dated(10) + MISSING + dated(10) + METRICS, id="ranks that begin together"),
        pytest.param(HEAD + MISSING + HEAD + METRICS, id="no time"),
        pytest.param(dated(10) + MISSING + HEAD + METRICS * 5 + SAYS.format(day="2026/03/02", minute=30),
                     id="a time far below"),
        pytest.param(dated(10) + METRICS + dated(12) + MISSING, id="nothing had ended"),
    ],
)  # fmt: skip
def test_one_start_stays_one(watch: Watch, text: str) -> None:
    done = watch(text)
    assert done.earlier == ()
    assert done.verdict.error_type == "exception"


@pytest.mark.parametrize("clock", ["[1772450905.97465{n}]", "2026-03-02 11:52:40,11{n}"])
def test_a_buffer_that_is_printed_twice_begins_no_start(watch: Watch, clock: str) -> None:
    def first(seconds: str) -> str:
        words = ("uses a stack of its own", "loaded at the toy's place", "cmd line: srun -n 2 python toy.py")
        return "".join(f"{clock.format(n=seconds)} toy.c:90 the toy {each}\n" for each in words)

    failed = "1: the toys are painted\n" + MISSING + "srun: error: n4: task 1: Exited with exit code 1\n"
    done = watch(first("1") + failed + first("1"))
    assert (done.earlier, done.verdict.error_type) == ((), "exception")
    assert len(watch(first("1") + failed + first("2")).earlier) == 1


def test_a_line_that_has_the_same_time_in_each_start_hides_none(watch: Watch) -> None:
    def first(second: int) -> str:
        return (
            "the toys were built at 2026-02-01 10:00:07.250\n"
            f"2026-03-02 11:52:{second},118 the toys are taken from the shelf\n"
            f"2026-03-02 11:52:{second},250 the toys are begun by srun\n"
        )

    done = watch(first(40) + "1: the toys are painted\n" + MISSING + first(50) + METRICS)
    assert (len(done.earlier), done.verdict.state != "failed") == (1, True)


LOADS = "".join(f"loads shard {shard:02} of the toy corpus\n" for shard in range(40))
RAISED = (
    'Traceback (most recent call last):\n  File "toy.py", line 7, in <module>\n    main()\n'
    "ValueError: (InvalidArgument) The toys disagree.\n  [operator < toy > error]\n"
)


def ring(rank: int, number: int = 0) -> str:
    return (
        f"I0302 02:43:16.141566 3048 nccl_context.cc:83] init nccl context nranks: 4 "
        f"local rank: {rank} gpu id: {rank} ring id: {number}\n"
    )


def test_a_rank_of_paddle_appends_each_start_to_its_own_file(watch: Watch) -> None:
    done = watch(ring(2) + LOADS + RAISED + ring(2) + LOADS)
    assert (done.verdict.state != "failed", done.decision.action) == (True, "none")
    assert [each.verdict.error_type for each in done.earlier] == ["exception"]
    again = watch(ring(2) + LOADS + RAISED + ring(2) + LOADS + RAISED)
    assert again.verdict.error_type == "exception"
    assert (again.verdict.root_line_number or 0) > 80


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("".join(map(ring, range(4))) + LOADS + RAISED, id="four ranks in one file"),
        pytest.param(
            ring(2) + LOADS + RAISED + ring(2, 7) + LOADS.replace("corpus", "shelf"),
            id="another ring of the same start",
        ),
        pytest.param(ring(2) + RAISED + ring(2) + LOADS[:200], id="a few lines apart"),
    ],
)
def test_its_words_begin_no_start_within_one(watch: Watch, text: str) -> None:
    done = watch(text)
    assert done.verdict.error_type == "exception"


GLOG = "W0302 {} {:5d} gpu_toys.cc:61] Please NOTE: device: 1, toy capability: 7.0\n"
CAUGHT = "Warning: the toy tracker is missing\nwhich: no nvcc in (/toy/bin)\n"


def test_the_stamps_of_glog_hold_no_other_words(watch: Watch) -> None:
    """A process's number may have more digits in the next start."""
    one, other = (
        CAUGHT + GLOG.format(clock, pid) for clock, pid in (("19:10:07.5", 4188), ("19:13:42.6", 41880))
    )
    done = watch(
        one
        + SAYS.format(day="2026/03/02", minute=10)
        + MISSING
        + other
        + SAYS.format(day="2026/03/02", minute=13)
    )
    assert [each.verdict.error_type for each in done.earlier] == ["exception"]
