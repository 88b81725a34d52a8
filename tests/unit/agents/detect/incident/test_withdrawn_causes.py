"""A cause with two more steps behind it tells why the job waits then. With more steps it tells nothing."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

MEMORY = "[rank5]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB.\n"
DRIVER = "[rank5]: RuntimeError: CUDA error: an illegal memory access was encountered\n"
WAIT = (
    "[rank0]:[E302 12:52:40.1 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=48, OpType=ALLREDUCE, NumelIn=64, NumelOut=64, Timeout(ms)=600000) ran for "
    "600041 milliseconds before timing out.\n"
)
OTHER = "[rank1]: KeyError: 'shard 7'\n"


def steps(first: int, last: int) -> str:
    return "".join(f"step: {step}  loss: 2.10  grad_norm: 1.02\n" for step in range(first, last + 1))


@pytest.mark.parametrize(("failed", "error_type"), [(MEMORY, "oom"), (DRIVER, "torch")])
def test_ranks_that_print_two_more_steps_and_wait_then_hide_no_cause(
    watch: Watch, failed: str, error_type: str
) -> None:
    done = watch(steps(1, 9) + failed + steps(10, 11) + WAIT)
    assert (done.verdict.error_type, done.decision.action) == (error_type, "stop")
    assert done.verdict.root_line == failed.strip()
    (waited,) = [rival for rival in done.rivals if rival.rule == "torch_watchdog_timeout"]
    assert "only waited" in waited.reason


def test_a_job_that_went_on_for_longer_had_got_over_it(watch: Watch) -> None:
    done = watch(steps(1, 9) + MEMORY + steps(10, 13) + WAIT)
    assert (done.verdict.error_type, done.decision.action) == ("nccl_timeout", "restart")


def test_a_later_cause_is_the_root_and_the_first_one_is_named(watch: Watch) -> None:
    done = watch(steps(1, 9) + MEMORY + steps(10, 11) + OTHER + WAIT)
    assert done.verdict.root_line == OTHER.strip()
    assert any("two more steps behind it" in rival.reason for rival in done.rivals)


def test_a_run_that_only_goes_on_has_no_failure(watch: Watch) -> None:
    assert watch(steps(1, 9) + MEMORY + steps(10, 11)).verdict.state == "healthy"


ENDED = "slurmstepd: error: *** JOB 77 ON n4 CANCELLED AT 2026-03-02T11:00:05 {}***\n"


def clocked(first: int, last: int, seconds: int) -> str:
    """Steps, one every ten seconds; the first is printed so many seconds behind eleven o'clock."""
    return "".join(
        f"2026-03-02 11:{(seconds + 10 * at) // 60:02}:{(seconds + 10 * at) % 60:02},118 - INFO - "
        f"step: {step}  loss: 2.10\n"
        for at, step in enumerate(range(first, last + 1))
    )


@pytest.mark.parametrize(("why", "error_type"), [("", "cancelled"), ("DUE TO TIME LIMIT ", "slurm_failure")])
def test_a_job_that_slurm_ended_may_make_steps_until_it_is_killed(
    watch: Watch, why: str, error_type: str
) -> None:
    done = watch(clocked(1, 1, 0) + ENDED.format(why) + clocked(2, 4, 10))
    assert (done.verdict.state, done.verdict.error_type) == ("failed", error_type)


def test_steps_minutes_behind_the_end_of_a_job_are_no_longer_its_own(watch: Watch) -> None:
    assert watch(clocked(1, 1, 0) + ENDED.format("") + clocked(2, 20, 10)).verdict.state == "healthy"


def test_steps_without_a_clock_show_that_a_job_went_on_behind_slurm_s_word(watch: Watch) -> None:
    assert watch(steps(1, 2) + ENDED.format("") + steps(3, 6)).verdict.state == "healthy"


@pytest.mark.parametrize(
    ("word", "error_type"),
    [
        (ENDED.format(""), "cancelled"),
        ("slurmstepd: error: Job 77 exceeded memory limit (1100 > 1000), being killed\n", "host_oom"),
    ],
)
def test_a_step_line_that_waited_in_a_buffer_takes_back_no_end_by_slurm(
    watch: Watch, word: str, error_type: str
) -> None:
    tenth = steps(1, 1) + steps(10, 10) + word + steps(20, 20)
    assert watch(tenth).verdict.error_type == error_type
    assert watch(tenth + steps(30, 30) + steps(40, 40)).verdict.state == "healthy"


def test_a_job_that_goes_on_behind_a_cancelled_step_had_not_ended(watch: Watch) -> None:
    step = ENDED.format("").replace("JOB 77", "STEP 77.0")
    assert watch(clocked(1, 1, 0) + step + clocked(2, 5, 10)).verdict.state == "healthy"


NOTICE = "toyd: the spot instance n4 is being reclaimed\n"
KILLED = "run.sh: line 9: 4188 Killed                  python toy.py\n"


@pytest.mark.parametrize(("made", "error_type"), [(12, "preemption"), (18, "host_oom")])
def test_a_node_whose_end_was_announced_two_minutes_before_is_why_the_job_was_killed(
    watch: Watch, made: int, error_type: str
) -> None:
    done = watch(
        clocked(1, 9, 0) + f"2026-03-02 11:01:25,118 - INFO - {NOTICE}" + clocked(10, 9 + made, 90) + KILLED
    )
    assert done.verdict.error_type == error_type


def test_a_job_that_outlives_such_a_notice_has_no_failure(watch: Watch) -> None:
    done = watch(clocked(1, 9, 0) + f"2026-03-02 11:01:25,118 - INFO - {NOTICE}" + clocked(10, 30, 90))
    assert done.verdict.state == "healthy"
