"""Two starts in one file that failed alike: a third one waits for a person."""

from __future__ import annotations

from unit.agents.conftest import Watch

AWAY = (
    "[launcher] attempt {number}/3: train.py --shards toy\n"
    "reads the shards of the toy corpus\nbuilds a toy model of 2 layers\n"
    "{steps}"
    "Traceback (most recent call last):\n"
    '  File "/toy/train.py", line {number}, in <module>\n'
    "    shard = store.read(index)\n"
    "botocore.exceptions.{error}\n"
    "[launcher] attempt {number} exited with 1\n"
)
NOT_REACHED = 'EndpointConnectionError: Could not connect to the endpoint URL: "http://toy.example.org/{}"'


def start(number: int, error: str = NOT_REACHED, *, steps: str = "") -> str:
    return AWAY.format(number=number, error=error.format(number), steps=steps)


def test_a_failure_that_the_start_before_met_alike_is_held(watch: Watch) -> None:
    done = watch(start(1) + start(2))
    assert [each.verdict.root_line_number for each in done.earlier] == [7]
    assert done.decision.action == "hold"
    assert "the start before ended of the same failure (log:7)" in done.decision.reason
    assert "neither made a step" in done.decision.reason


def test_one_start_and_one_that_failed_otherwise_are_started_again(watch: Watch) -> None:
    assert watch(start(1)).decision.action == "restart"
    assert (
        watch(start(1, "ReadTimeoutError: Read timeout on endpoint URL") + start(2)).decision.action
        == "restart"
    )


def test_starts_that_made_steps_are_started_again(watch: Watch) -> None:
    steps = "step: 7 loss: 2.5\nstep: 8 loss: 2.4\n"
    done = watch(start(1, steps=steps) + start(2, steps=steps))
    assert done.earlier
    assert done.decision.action == "restart"


STUCK = (
    "[launcher] attempt {number}/3: train.py --shards toy\n"
    "reads the shards of the toy corpus\nbuilds a toy model of 2 layers\n"
    "step: 7 loss: 2.5\nstep: 8 loss: 2.4\n"
    "[rank2]:[E302 10:00:0{number}.1 ProcessGroupNCCL.cpp:632] [Rank 2] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum={at}, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for "
    "60000{number} milliseconds before timing out.\n"
    "[launcher] attempt {number} exited with 1\n"
)


def test_ranks_that_waited_in_the_same_collective_before_will_wait_there_again(watch: Watch) -> None:
    starts = [(1, 4177), (2, 4418), (3, 4177)]
    done = watch("".join(STUCK.format(number=number, at=at) for number, at in starts))
    assert len(done.earlier) == 2
    assert (done.verdict.error_type, done.decision.action) == ("nccl_timeout", "hold")
    assert done.decision.reason.startswith("an earlier start ended in the same collective (log:6)")


def test_ranks_that_waited_in_another_collective_are_started_again(watch: Watch) -> None:
    done = watch(STUCK.format(number=1, at=77) + STUCK.format(number=2, at=418))
    assert len(done.earlier) == 1
    assert done.decision.action == "restart"
