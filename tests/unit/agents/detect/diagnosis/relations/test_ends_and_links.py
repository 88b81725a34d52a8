"""A link breaks, or a wait expires, where a process has ended: what ended it is the root."""

from __future__ import annotations

import pytest

from midwatch.agents.replay.scheduler_record import from_text
from unit.agents.conftest import Watch
from unit.agents.detect.diagnosis.test_cascades import frames
from unit.agents.detect.diagnosis.test_scheduler_word import LINK, STEPS, WAITING, Judge, judge

__all__ = ["judge"]

UCX = "[1714.1] [n4:4188:0] ib_mlx5_log.c:171  Transport retry count exceeded on mlx5_0:1/RoCE (synd 0x15)\n"
MEMORY = "slurmstepd: error: Detected 1 oom_kill event in StepId=77.0.\n"
KERNEL = "[77.1] Memory cgroup out of memory: Killed process 4188 (python) total-vm:77kB, anon-rss:9kB\n"
KILLED = "failed (exitcode: -9) local_rank: 3 (pid: 4188) of binary: /toy/bin/python\n"
EXITED = "srun: error: n1: task 3: Exited with exit code 1\n"
FINISHED = "srun: error: n1: task 3: Exited with exit code 0\n"


@pytest.mark.parametrize("record", [MEMORY, KERNEL])
@pytest.mark.parametrize("link", [LINK, UCX])
def test_a_memory_killers_record_behind_a_broken_link_tells_why_it_broke(
    watch: Watch, link: str, record: str
) -> None:
    done = watch(STEPS + link + WAITING + record)
    assert (done.verdict.error_type, done.verdict.root_line, done.decision.action) == (
        "host_oom",
        record.strip(),
        "stop",
    )
    assert watch(STEPS + link + WAITING).decision.action == "restart"


def test_a_memory_killer_of_long_ago_broke_no_link(watch: Watch) -> None:
    later = STEPS.replace("  1/", " 11/").replace("  2/", " 12/").replace("  3/", " 13/")
    assert watch(STEPS + MEMORY + later + LINK).verdict.root_line == LINK.strip()


def test_a_link_that_broke_beside_a_kill_may_have_broken_by_that(watch: Watch) -> None:
    done = watch(STEPS + LINK + WAITING + KILLED)
    assert (done.verdict.root_line, done.decision.action) == (LINK.strip(), "hold")
    assert "a process was killed" in done.verdict.doubt


def test_srun_that_cleans_up_behind_a_broken_link_killed_nobody(watch: Watch) -> None:
    cleaned = EXITED + "srun: Terminating StepId=77.0\nsrun: error: n1: task 4: Killed\n"
    assert watch(STEPS + LINK + WAITING + cleaned).decision.action == "restart"


def test_the_schedulers_word_on_memory_stands_above_a_broken_link(judge: Judge) -> None:
    record = from_text("JobID|State|ExitCode\n77|OUT_OF_MEMORY|0:125\n", "sacct")
    done = judge(record, STEPS + LINK + WAITING)
    assert (done.verdict.error_type, done.decision.action) == ("host_oom", "hold")


ASKED = "W0302 {} 77 torch/distributed/elastic/agent/server/api.py:704] Received {} death signal, "
TAKEN = "slurmstepd: error: *** JOB 77 ON n1 CANCELLED AT 2026-03-02T11:52:44{} ***\n"


@pytest.mark.parametrize(
    ("why", "action"),
    [(" DUE TO TIME LIMIT", "stop"), (" DUE TO NODE FAILURE", "restart"), ("", "restart")],
)
@pytest.mark.parametrize("clock", ["11:52:44.341", "11:47:44.341"])
def test_the_schedulers_word_tells_why_it_had_asked_torchrun_to_end(
    watch: Watch, why: str, action: str, clock: str
) -> None:
    done = watch(STEPS + ASKED.format(clock, 15) + "shutting down workers\n" + TAKEN.format(why))
    assert (done.verdict.root_line, done.decision.action) == (TAKEN.format(why).strip(), action)


def test_a_step_that_is_cancelled_without_a_reason_has_that_of_its_job(watch: Watch) -> None:
    step = TAKEN.format("").replace("JOB 77", "STEP 77.0")
    limit = TAKEN.format(" DUE TO TIME LIMIT")
    assert watch(STEPS + step + limit).verdict.root_line == limit.strip()
    assert watch(STEPS + step + TAKEN.format("")).verdict.root_line == step.strip()


@pytest.mark.parametrize(("clock", "signal"), [("09:02:44.341", 15), ("11:52:44.341", 1)])
def test_a_signal_of_hours_before_or_of_a_terminal_is_not_the_schedulers(
    watch: Watch, clock: str, signal: int
) -> None:
    asked = ASKED.format(clock, signal) + "shutting down workers\n"
    assert watch(STEPS + asked + TAKEN.format(" DUE TO TIME LIMIT")).verdict.root_line == asked.strip()


@pytest.mark.parametrize("follows", [WAITING, LINK])
def test_who_waits_for_a_process_that_had_failed_waits_since_then(watch: Watch, follows: str) -> None:
    done = watch(STEPS + EXITED + follows)
    assert (done.verdict.root_line, done.decision.action) == (EXITED.strip(), "hold")
    assert watch(STEPS + follows + EXITED).decision.action == "restart"
    assert watch(STEPS + FINISHED + follows).verdict.root_line == follows.strip()


STORE = "could not remove the old toy: [Errno 116] Stale file handle: '/toy/step_3'\n"
SERVICE = (
    frames("requests.exceptions.HTTPError: 503 Server Error: Busy for url: https://toy.example.org") + "\n"
)


@pytest.mark.parametrize("told", [STORE, SERVICE])
def test_what_a_program_told_and_got_over_is_not_why_a_mistake_ended_it(watch: Watch, told: str) -> None:
    ended = frames("KeyError: 'wheels'", prefix="[rank3]: ") + "\n"
    done = watch(STEPS + told + ended)
    assert (done.verdict.root_line, done.decision.action) == ("[rank3]: KeyError: 'wheels'", "stop")
    assert watch(STEPS + told).decision.action == "restart"


def test_what_ended_one_rank_is_not_got_over_by_another(watch: Watch) -> None:
    stale = frames("OSError: [Errno 116] Stale file handle: '/toy/shard_3'", prefix="[rank3]: ") + "\n"
    ended = frames("TypeError: 'NoneType' object is not subscriptable", prefix="[rank7]: ") + "\n"
    done = watch(STEPS + stale + ended)
    assert (done.verdict.error_type, done.decision.action) == ("storage", "restart")


@pytest.mark.parametrize("crash", ["Aborted (core dumped)", "Segmentation fault"])
def test_srun_that_cleans_up_behind_a_crashed_task_killed_nobody(watch: Watch, crash: str) -> None:
    crashed = f"srun: error: n1: task 3: {crash}\n"
    cancelled = "slurmstepd: error: *** STEP 77.0 ON n1 CANCELLED AT 2026-03-02T12:00:01 ***\n"
    cleaned = crashed + "srun: Terminating StepId=77.0\n" + cancelled + "srun: error: n1: task 4: Killed\n"
    assert watch(STEPS + WAITING + cleaned).verdict.error_type not in ("host_oom", "cancelled")
    killed_first = "srun: error: n1: task 4: Killed\n" + crashed
    assert watch(STEPS + killed_first).verdict.root_line == "srun: error: n1: task 4: Killed"


NO_SUCH_TOY = "     Error in routine  read_toys (1):\n     bad line in namelist &toys\n\n     stopping ...\n"
CALLED = (
    "Abort(7) on node 3 (rank 3 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 7) - process 3\n",
    "MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD\nwith errorcode 1.\n",
)


@pytest.mark.parametrize("called", CALLED)
def test_srun_that_cleans_up_behind_mpi_abort_killed_nobody(watch: Watch, called: str) -> None:
    aborted = "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n"
    cancelled = "slurmstepd: error: *** STEP 77.0 ON n1 CANCELLED AT 2026-03-02T12:00:01 ***\n"
    cleaned = f"{aborted}{cancelled}srun: error: n1: tasks 0-35: Killed\n"
    done = watch(NO_SUCH_TOY + called + cleaned)
    assert NO_SUCH_TOY.startswith(done.verdict.root_line)
    assert done.decision.action == "stop"
    assert watch(called + cleaned).verdict.error_type not in ("host_oom", "cancelled")
    assert watch(cleaned + called).decision.action != "stop"
