"""Each attempt writes to a folder of its own: the last one counts, and the answer tells of the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from midwatch.agents.replay.reading.log_files import LogFile
from midwatch.agents.replay.replayed import Replayed
from midwatch.agents.replay.starts.appended_starts import replay_last
from midwatch.agents.replay.starts.attempt_folders import attempts_of
from unit.agents.replay.starts.test_appended_starts import OUT_OF_MEMORY, RAISED
from unit.agents.replay.starts.test_worker_group_starts import AGAIN, FAILED, STARTS

WRITTEN = 1_772_460_000.0  # behind all times that they print
At = Callable[[Mapping[str, str]], Replayed]


def steps(hour: int, first: int, last: int) -> str:
    return "".join(
        f"2026-03-02 {hour:02}:{step // 60:02}:{step % 60:02},000 step: {step}  loss:  2.5\n"
        for step in range(first, last + 1)
    )


def grouped(texts: Mapping[str, str]) -> list[list[str]]:
    files = [LogFile(path, text.encode(), 0.0) for path, text in texts.items()]
    return [[file.path for file in own] for own in attempts_of(files)]


FIRST = steps(2, 1, 80) + RAISED
SECOND = steps(3, 51, 69)


@pytest.mark.parametrize(
    "name",
    [
        "toy/none_x7/attempt_{}/0/stderr.log",
        "toy/attempt{}/rank_0.log",
        "toy/node-1/restart_{}/rank_0.log",
        "toy/start-{}/train.log",
        "toy/Try{}/train.log",
        "toy/blue-retry-{}/train.log",
        "toy/rank0.attempt{}.log",
        "toy/train_restart_{}.out",
    ],
)
def test_the_last_attempt_counts(replay_at: At, name: str) -> None:
    one, other = name.format(9), name.format(10)
    done = replay_at({one: FIRST, other: SECOND})
    assert (done.verdict.state, done.verdict.step) == ("healthy", 69)
    assert [(each.path, each.first, each.last, each.verdict.error_type) for each in done.earlier] == [
        (one, 1, 84, "exception")
    ]
    assert "each folder of an attempt holds one start, and the last one counts" in done.assumed
    done = replay_at({other: SECOND + OUT_OF_MEMORY, one: FIRST})
    assert (done.verdict.error_type, done.verdict.root_file) == ("oom", other)


@pytest.mark.parametrize(
    "name",
    ["toy/node_{}/train.log", "toy/rank{}/train.log", "toy/{}/stderr.log", "toy/entry_{}/train.log"],
)
def test_folders_of_nodes_and_ranks_hold_one_start(replay_at: At, name: str) -> None:
    done = replay_at({name.format(0): FIRST, name.format(1): SECOND})
    assert (done.verdict.error_type, done.earlier) == ("exception", ())


def test_attempts_at_once_are_parts_of_one_start(replay_at: At) -> None:
    done = replay_at({"toy/try_0/train.log": FIRST, "toy/try_1/train.log": steps(2, 1, 80)})
    assert (done.verdict.error_type, done.earlier) == ("exception", ())


def test_one_attempt_of_many_ranks_is_whole(replay_at: At) -> None:
    ranks = {f"toy/attempt_0/{rank}/train.log": steps(2, 1, 80) for rank in range(3)}
    done = replay_at({**ranks, "toy/attempt_0/3/train.log": FIRST})
    assert (done.verdict.error_type, done.earlier) == ("exception", ())


def test_what_the_launcher_says_of_an_earlier_attempt_is_of_it(replay_at: At) -> None:
    launcher = "the toys wind up\n" + FAILED + AGAIN + STARTS
    runs = {"toy/attempt_0/0/stdout.log": FIRST, "toy/attempt_1/0/stdout.log": SECOND}
    done = replay_at({**runs, "toy/agent.log": launcher})
    assert (done.verdict.state, len(done.earlier)) == ("healthy", 2)
    done = replay_at({**runs, "toy/agent.log": launcher + FAILED})
    assert (done.verdict.state, done.verdict.root_line_number) == ("failed", 5)


def test_an_attempt_that_has_written_nothing_tells_nothing(replay_at: At) -> None:
    done = replay_at({"toy/attempt_0/train.log": FIRST, "toy/attempt_1/train.log": "\n"})
    assert (done.verdict.error_type, done.earlier) == ("exception", ())


def test_starts_that_share_a_file_of_an_earlier_attempt_are_told_too(replay_at: At) -> None:
    head = "SLURM_JOB_ID=77{}\nnodes of this start: toy-01\n+ srun python train.py --toy\n"
    shared = head.format(1) + steps(1, 1, 9) + OUT_OF_MEMORY + head.format(2) + FIRST
    done = replay_at({"toy/attempt_0/train.log": shared, "toy/attempt_1/train.log": SECOND})
    assert [each.verdict.error_type for each in done.earlier] == ["oom", "exception"]


def test_each_agent_counts_its_own_attempts() -> None:
    texts = {
        f"toy/{agent}/attempt_{number}/0/stdout.log": steps(2 + number, 1, 9)
        for agent, last in (("none_a", 3), ("none_b", 2))
        for number in range(last)
    }
    assert grouped({**texts, "toy/agent.log": "the toys wind up\n"}) == [
        ["toy/none_a/attempt_0/0/stdout.log", "toy/none_b/attempt_0/0/stdout.log"],
        ["toy/none_a/attempt_1/0/stdout.log"],
        ["toy/none_a/attempt_2/0/stdout.log", "toy/none_b/attempt_1/0/stdout.log", "toy/agent.log"],
    ]


def test_a_number_of_the_whole_job_s_folder_parts_nothing() -> None:
    inner = ["/toys/attempt_3/restart_0/a.log", "/toys/attempt_3/restart_1/a.log"]
    assert grouped(dict.fromkeys(inner, "x\n")) == [[inner[0]], [inner[1]]]
    ranks = [f"/toys/attempt_3/rank_{rank}.log" for rank in range(3)]
    assert grouped(dict.fromkeys(ranks, "x\n")) == [ranks]


@pytest.fixture
def replay_at(watch_files: Callable[..., Replayed]) -> At:
    def replayed(texts: Mapping[str, str]) -> Replayed:
        files = [LogFile(path, text.encode(), WRITTEN) for path, text in texts.items()]
        return replay_last(files, watch_files)

    return replayed
