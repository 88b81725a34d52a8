"""A job that puts itself back into the queue, all in one file, and a task of Ray's that runs once more."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

STEPS = "iteration 10/ 90 | lm loss: 2.5\niteration 20/ 90 | lm loss: 2.4\n"
REQUEUED = """requeueing job 77
srun: Job step aborted: Waiting up to 7 seconds for job step to finish.
slurmstepd-toy1: error: *** JOB 77 ON toy1 CANCELLED AT 2026-03-02T11:52:40 DUE TO JOB REQUEUE ***
srun: got SIGCONT
srun: forcing job termination
"""
AGAIN = "resumed from iteration 20\niteration 30/ 90 | lm loss: 2.3\niteration 40/ 90 | lm loss: 2.2\n"
RETRIED = """(raylet) Task Toy.turn failed. There are 2 retries remaining, so the task will be retried.
(raylet) A worker died or was killed while executing a task by an unexpected system error. See its logs.
"""


def test_a_job_that_went_on_behind_its_own_requeue_is_not_started_again(watch: Watch) -> None:
    done = watch(STEPS + REQUEUED + AGAIN)
    assert (done.verdict.state, done.decision.action) == ("healthy", "none")


def steps(first: int, last: int, stamp: str = "") -> str:
    return "".join(f"{stamp}iteration {n}/ 900 | lm loss: 2.{n}\n" for n in range(first, last))


TAKEN = REQUEUED.partition("\n")[2]


@pytest.mark.parametrize(
    ("behind", "earlier"),
    [
        pytest.param(steps(60, 90, "2026-03-02 11:59:00 "), 1, id="minutes later"),
        pytest.param("resuming from step 59\n" + steps(60, 90), 1, id="it tells that it resumes"),
        pytest.param(steps(60, 90), 0, id="what a buffer held back"),
    ],
)
def test_behind_a_requeue_another_start_may_go_on_with_the_next_step(
    watch: Watch, behind: str, earlier: int
) -> None:
    done = watch(steps(10, 60) + TAKEN + behind)
    assert len(done.earlier) == earlier


def test_a_requeue_that_nobody_in_the_job_asked_for_is_a_preemption(watch: Watch) -> None:
    done = watch(STEPS + REQUEUED.partition("\n")[2])
    assert done.verdict.error_type == "preemption"


def test_a_worker_whose_task_ray_runs_once_more_ended_nothing(watch: Watch) -> None:
    assert watch(STEPS + RETRIED + AGAIN + "training done\n").decision.action == "none"
    assert watch(STEPS + AGAIN + "training done\n" + RETRIED).decision.action == "none"
    assert watch(STEPS + RETRIED.partition("\n")[2]).verdict.error_type == "ray_actor_died"
