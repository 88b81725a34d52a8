"""A check of native code that failed: in the midst of work it is the cause, behind a departure it follows."""

from __future__ import annotations

import pytest

from midwatch.agents.detect.diagnosis.candidates import RootCandidate
from midwatch.agents.detect.diagnosis.relations.peer_exits import after_peer_exits
from unit.agents.conftest import Watch
from unit.agents.detect.diagnosis.test_cascades import frames
from unit.agents.detect.diagnosis.test_not_root import consequence

FAILED = (
    "(pid=raylet) F0302 11:52:40.118290  4188  4188 node_manager.cc:7]  Check failed: it != leases_.end()"
)
ASKED = (
    "(pid=raylet) I0302 11:52:39.130998  4188  4188 main.cc:216] Raylet received SIGTERM, shutting down..."
)


def test_a_check_that_failed_in_the_midst_of_work_is_the_cause(watch: Watch) -> None:
    done = watch(f"loading the toy\n{FAILED}\n")
    assert (done.verdict.error_type, done.verdict.root_line) == ("ray_actor_died", FAILED)
    assert done.decision.action == "restart"


def test_a_check_that_failed_in_a_process_asked_to_end_follows_from_that(watch: Watch) -> None:
    done = watch(f"loading the toy\n{ASKED}\n{FAILED}\n")
    assert (done.verdict.error_type, done.verdict.root_line) == ("cancelled", ASKED)
    assert done.decision.action == "hold"


@pytest.mark.parametrize(
    "asked",
    [
        ASKED.replace("(pid=raylet)", "(pid=raylet, ip=10.0.0.9)"),
        ASKED.replace("4188", "99"),
        ASKED.replace("(pid=raylet) ", "").replace("I0302", "[x] I0302"),
    ],
)
def test_a_request_to_another_process_does_not_excuse_the_check(watch: Watch, asked: str) -> None:
    assert watch(f"loading the toy\n{asked}\n{FAILED}\n").verdict.root_line == FAILED


def test_a_request_behind_the_check_does_not_excuse_it(watch: Watch) -> None:
    assert watch(f"loading the toy\n{FAILED}\n{ASKED}\n").verdict.root_line == FAILED


def test_the_newer_stamp_of_ray_names_the_process_too(watch: Watch) -> None:
    asked = (
        "[2026-03-02 11:52:40,117 I 77 77] main.cc:483: received SIGTERM. Existing local drain request = None"
    )
    failed = "[2026-03-02 11:52:41,125 C 77 91] (raylet) toy_manager.cc:86:  Check failed: exit_code == 0 toy"
    assert watch(f"{asked}\n{failed}\n").verdict.root_line == asked
    assert watch(f"{asked}\n{failed.replace(' 77 91', ' 78 91')}\n").decision.action == "restart"
    left = failed.replace("toy", "The raylet exited immediately because the toy agent failed")
    assert watch(f"{asked}\n{left}\n").verdict.root_line == asked


@pytest.mark.parametrize(
    "failed",
    [
        "(pid=77) F0302 11:52:40.1 77 core_worker.cc:122]  Check failed: _s.ok() Bad status: IOError:"
        " [RayletClient] Connection closed unexpectedly.",
        "(raylet) [2026-03-02 11:52:40,118 C 77 91] (raylet) gcs_toy.cc:7:  Check failed: alive"
        " Failed to connect to GCS within 60 seconds",
        "F0302 11:52:40.1 77 77 core_worker.cc:122]  Check failed: _s.ok() Bad status: IOError: Broken pipe",
        "(pid=77) F0302 11:52:40.1 77 77 service_based_gcs_client.cc:7] Couldn't reconnect to GCS server. The"
        " last attempted GCS server address was 10.0.0.9:7781",
    ],
)
def test_a_check_that_says_itself_that_a_peer_was_gone_proves_no_passing_trouble(
    watch: Watch, failed: str
) -> None:
    done = watch(f"loading the toy\n{failed}\n")
    assert (done.verdict.error_type, done.verdict.root_line) == ("communication", failed)
    assert done.decision.action == "hold"


LINKS = [
    "h4:310:402 [1] transport/net_ib.cc:1296 NCCL WARN NET/IB : Got completion from peer 10.8.0.4<41200> with"
    " error 12, opcode 0, len 0, vendor err 129",
    "[1714.1] [n4:4188:0] ib_mlx5_log.c:171  Transport retry count exceeded on mlx5_0:1/RoCE (synd 0x15)",
]
TRAINED = "".join(
    f" iteration {n:8d}/ 900 | consumed samples: 64 | elapsed time per iteration (ms): 95.0 | "
    "lm loss: 2.1 |\n"
    for n in (1, 2, 3)
)
RAISED = frames("ValueError: the toy broke", prefix="[rank3]: ")


@pytest.mark.parametrize("link", LINKS)
def test_a_link_to_a_rank_that_raised_breaks_since_it_left(watch: Watch, link: str) -> None:
    done = watch(f"{RAISED}\n{link}\n")
    assert done.verdict.root_line == "[rank3]: ValueError: the toy broke"
    assert done.decision.action == "stop"


@pytest.mark.parametrize("link", LINKS)
def test_a_link_that_breaks_by_itself_is_behind_what_the_ranks_raise(watch: Watch, link: str) -> None:
    done = watch(f"{TRAINED}{link}\n{RAISED}\n")
    assert done.verdict.root_line == link
    assert done.decision.action == "restart"


def test_a_fabric_that_fails_before_the_first_step_may_never_have_worked(watch: Watch) -> None:
    done = watch(f"{LINKS[0]}\n{RAISED}\n")
    assert done.verdict.root_line == LINKS[0]
    assert done.decision.action == "hold"
    assert "no training step was seen" in done.verdict.doubt


@pytest.mark.parametrize(
    "waited",
    [
        "[rank0]: RuntimeError: [Rank 0]: Ranks 3, 7 failed to pass monitoredBarrier in 60000 ms",
        "[rank0]: RuntimeError: Timeout waiting for key: default_pg/0/0 after 300000 ms",
        "  - To our best knowledge, ranks [3] are the lagging ranks that caused this timeout. They never"
        " joined any collectives",
    ],
)
def test_who_waits_for_a_rank_that_raised_waits_since_it_left(watch: Watch, waited: str) -> None:
    assert watch(f"{RAISED}\n{waited}\n").verdict.root_line == "[rank3]: ValueError: the toy broke"
    assert watch(f"{waited}\n{RAISED}\n").verdict.root_line == waited


def test_who_waits_for_a_rank_that_was_killed_waits_since_it_left(watch: Watch) -> None:
    killed = "[ERROR] [launch.py:321] ['python3', 'train.py'] exits with return code = -9"
    waited = "[rank0]: RuntimeError: [Rank 0]: Ranks 3, 7 failed to pass monitoredBarrier in 60000 ms"
    assert watch(f"{killed}\n{waited}\n").verdict.error_type == "host_oom"


STEPS = "".join(f"step: {step}  loss:  2.{step}\n" for step in range(10, 40))
WAITED_LONG = (
    "[E ProcessGroupNCCL.cpp:523] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=77,"
    " OpType=ALLREDUCE, NumelIn=18, NumelOut=18, Timeout(ms)=600000) ran for 600118 milliseconds\n"
    "[E ProcessGroupNCCL.cpp:543] To avoid data inconsistency, we are taking the entire process down.\n"
)


def test_ranks_that_wait_behind_a_terminated_launcher_follow_from_that(watch: Watch) -> None:
    done = watch(STEPS + "Terminated\n" + WAITED_LONG)
    assert (done.verdict.error_type, done.verdict.root_line) == ("cancelled", "Terminated")
    assert done.decision.action == "hold"


NODE_FAILED = (
    "slurmstepd: error: *** STEP 4711.0 ON toy-2 CANCELLED AT 2026-03-02T11:52:40 DUE TO NODE FAILURE, SEE"
    " SLURMCTLD LOG FOR DETAILS ***\n"
)
TASK_LEFT = "srun: error: toy-2: task 1: Exited with exit code 1\n"


@pytest.mark.parametrize(
    ("below", "error_type", "action"),
    [
        (NODE_FAILED + WAITED_LONG, "slurm_failure", "restart"),
        (WAITED_LONG + NODE_FAILED, "slurm_failure", "restart"),
        (WAITED_LONG + TASK_LEFT, "nccl_timeout", "restart"),
        (
            WAITED_LONG + "NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus.\n",
            "hardware",
            "restart",
        ),
        (WAITED_LONG + "ValueError: the toy has no wheel 7\n", "exception", "stop"),
    ],
)
def test_whoever_says_why_wins_over_a_shell_s_word(
    watch: Watch, below: str, error_type: str, action: str
) -> None:
    done = watch(STEPS + "Terminated\n" + below)
    assert (done.verdict.error_type, done.decision.action) == (error_type, action)


def test_a_terminated_launcher_for_which_nobody_waits_tells_only_of_an_end() -> None:
    told = consequence(2, "shell_terminated", "cancelled", general=True, text="Terminated")
    left = consequence(4, "toy_peer", "ray_actor_died")
    assert [each.hit.role for each in after_peer_exits(list(map(RootCandidate, (told, left))), [])] == [
        "consequence",
        "consequence",
    ]


@pytest.mark.parametrize(
    "between",
    [
        "Terminated\n" + STEPS.replace("step: ", "step: 1"),
        "run.sh: line 12:  4188 Terminated              ./watch_the_toys.sh\n",
        WAITED_LONG + "Terminated\n",
    ],
)
def test_what_ended_beside_the_training_explains_no_wait(watch: Watch, between: str) -> None:
    done = watch(STEPS + between + WAITED_LONG)
    assert (done.verdict.error_type, done.decision.action) == ("nccl_timeout", "restart")


def test_a_link_that_breaks_behind_a_terminated_launcher_follows_too(watch: Watch) -> None:
    done = watch(STEPS + "Terminated\n" + LINKS[0] + "\n" + WAITED_LONG)
    assert (done.verdict.error_type, done.decision.action) == ("cancelled", "hold")
