"""What follows from another line is not the root. Each mechanism has a case on either side of its border."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from midwatch.agents.decide.decision import Rulebook
from midwatch.agents.detect.diagnosis.relations.related import related
from midwatch.agents.detect.diagnosis.relations.surroundings import Surroundings
from midwatch.agents.policies.loader import load_policy
from midwatch.agents.replay.job_replay import replay
from midwatch.agents.replay.reading.log_files import LogFile
from midwatch.agents.replay.replayed import Replayed
from midwatch.agents.replay.scheduler_record import from_exit_code, from_text
from midwatch.agents.rulesets.bundles import watched_rules
from midwatch.agents.schedulers.base import StartState
from midwatch.rules.detectors.limits import WatchLimits
from midwatch.streams.records import Hit, Line
from unit.agents.conftest import Watch
from unit.agents.detect.diagnosis.test_cascades import frames

STEPS = "".join(
    f" iteration {n:8d}/ 900 | consumed samples: 64 | elapsed time per iteration (ms): 95.0 | "
    "lm loss: 2.1 |\n"
    for n in (1, 2, 3)
)
WATCHDOG = (
    "[rank2]:[E302 11:52:40.1 ProcessGroupNCCL.cpp:757] [Rank 2] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=4188, OpType=ALLREDUCE, NumelIn=64, NumelOut=64, Timeout(ms)=30000) ran for "
    "30041 milliseconds before timing out."
)
NAMED = (
    "[rank4]:[E302 11:52:41.0 ProcessGroupNCCL.cpp:1682] [PG ID 0 PG GUID 0(default_pg) Rank 4] "
    "Received a dump signal due to a collective timeout from  rank 7 and we will try our best to dump the "
    "debug info."
)
RELAYED = (
    "[rank3]:[E302 11:52:41.0 ProcessGroupNCCL.cpp:1682] [PG ID 0 PG GUID 0(default_pg) Rank 3] "
    "Observed flight recorder dump signal from another rank via TCPStore."
)
DIFFER = (
    "[rank2]: RuntimeError: DDP expects same model across all ranks, but Rank 2 has 40 params, while "
    "rank 0 has inconsistent 0 params."
)
GLOO = (
    "[rank3]: RuntimeError: [/src/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting "
    "1800000ms for recv operation to complete"
)
WORD = (
    "n4:24:24 [0] transport/p2p.cc:574 NCCL WARN failed to open the toy's handle : 711 peer mapping exhausted"
)
GENERAL = (
    "RuntimeError: NCCL error in: /src/ProcessGroupNCCL.cpp:518, unhandled cuda error, NCCL version 2.4.8"
)
OFI = "n4:88:90 [2] nccl_net_ofi_create_plugin:208 NCCL WARN NET/OFI Failed to initialize sendrecv protocol"
SOCKET = "n4:88:90 [2] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.4<0>"
KILLED = "RuntimeError: DataLoader worker (pid 911) is killed by signal: Killed."
CGROUP = (
    "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=77.0. Some of your processes may have "
    "been killed by the cgroup out-of-memory handler."
)
CRASHED = "RuntimeError: DataLoader worker (pid 911) is killed by signal: Aborted. "
CHILD = "  what():  CUDA error: initialization error"
REQUEUED = "slurmstepd: error: *** JOB 7781 ON n1 CANCELLED AT 2026-03-02T12:00:01 DUE TO JOB REQUEUE ***"
VAGUE = "  what():  CUDA error: unknown error"
NODE = "srun: error: Node failure on n7"
ASKED_TO_STOP = "RuntimeError: DataLoader worker (pid 911) is killed by signal: Terminated."
DONE = "2026-03-02 12:00:01 - root - INFO - Training completed"


@pytest.mark.parametrize(
    ("lines", "root"),
    [
        pytest.param([WATCHDOG, DIFFER], WATCHDOG, id="the collective was broken before it compared"),
        pytest.param([DIFFER, WATCHDOG], DIFFER, id="the models differed before anybody waited"),
        pytest.param([RELAYED, NAMED], NAMED, id="the line that names the rank, not its relays"),
        pytest.param([GLOO, NAMED], NAMED, id="the watchdog's report, not another group's wait"),
        pytest.param([GLOO], GLOO, id="the wait, where nobody else reports"),
        pytest.param([WORD, GENERAL], WORD, id="NCCL's own words, not its general error"),
        pytest.param([GENERAL], GENERAL, id="the general error, where NCCL says nothing"),
        pytest.param([KILLED, CGROUP], CGROUP, id="the record of who killed, not the parent's notice"),
        pytest.param([KILLED], KILLED, id="the parent's notice, where nobody has a record"),
        pytest.param([CHILD, CRASHED], CHILD, id="the child's own error, not the parent's notice"),
        pytest.param([VAGUE, NODE], NODE, id="a failed node, not its vague last words"),
        pytest.param([frames("KeyError: 'x'"), NODE], "KeyError: 'x'", id="an own error, not the node"),
    ],
)
def test_the_first_report_is_the_root(watch: Watch, lines: list[str], root: str) -> None:
    done = watch(STEPS + "\n".join(lines) + "\n")
    assert done.verdict.root_line.strip() == root.strip()


def test_a_probe_with_a_fallback_that_worked_ended_nothing(watch: Watch) -> None:
    assert watch(f"{OFI}\n{SOCKET}\n").decision.action == "none"
    assert watch(f"{SOCKET}\n{OFI}\n").decision.action == "stop"


NVLS = "n4:88:90 [2] transport/nvls.cc:640 NCCL WARN Cuda failure 1 'invalid argument'"


def test_nvlink_sharp_that_nccl_gave_up_ended_nothing(watch: Watch) -> None:
    assert watch(f"{NVLS}\n{STEPS}").decision.action == "none"
    assert watch(f"{STEPS}{NVLS}\n").decision.action == "none"
    failed = watch(f"{NVLS}\n{GENERAL}\n")
    assert (failed.verdict.root_line, failed.decision.action) == (NVLS, "stop")


def test_a_collnet_that_nccl_does_without_ended_nothing(watch: Watch) -> None:
    warned = "n4:88:90 [0] NCCL WARN Cannot initialize CollNet, using point-to-point network instead\n"
    traces = "n4:88:90 [0] NCCL INFO init.cc:77 -> 2\nn4:89:91 [1] NCCL INFO init.cc:77 -> 2\n"
    assert watch(warned + traces).decision.action == "none"
    assert watch(traces + warned).verdict.error_type == "nccl"
    assert watch(warned + traces.replace("init.cc", "net.cc")).verdict.error_type == "nccl"
    assert watch(f"{warned}{traces}{GENERAL}\n").verdict.state == "failed"


def test_a_rule_that_snakemake_starts_again_ended_nothing(watch: Watch) -> None:
    failed = "Error in rule paint_toys:\n    jobid: 7\n    output: toys.txt\n"
    again = "Trying to restart job 7.\nSelect jobs to execute...\n"
    assert watch(failed + again).decision.action == "none"
    assert (
        watch(
            failed + again + failed + "Exiting because a job execution failed. Look above for error"
        ).verdict.state
        == "failed"
    )
    assert watch(failed + "7 of 7 steps (100%) done\n").decision.action == "none"


SERVER = (
    "(APIServer pid=4188) INFO 03-02 11:52:40 [launcher.py:77] [shutdown] API server: shutdown triggered\n"
)
ENGINE_GONE = "".join(
    f"(APIServer pid=4188) ERROR 03-02 11:52:41 [async_llm.py:118] {line}\n"
    for line in (
        "AsyncLLM output_handler failed.",
        "Traceback (most recent call last):",
        '  File "/toy/vllm/v1/engine/async_llm.py", line 77, in output_handler',
        "    outputs = await engine_core.get_output_async()",
        "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.",
    )
)


def test_a_server_that_was_asked_to_end_may_lose_its_engine(watch: Watch) -> None:
    closed = "(APIServer pid=4188) INFO:     Application shutdown complete.\n"
    assert watch(SERVER + ENGINE_GONE + closed).decision.action == "none"
    assert watch(ENGINE_GONE + SERVER + closed).verdict.state == "failed"
    assert (
        watch(SERVER + ENGINE_GONE.replace("EngineDeadError", "ToyError") + closed).verdict.state == "failed"
    )


@pytest.mark.parametrize("asked", ["Job 7781 was warned: requeueing itself", "+ scontrol requeue 7781"])
def test_a_job_that_requeued_itself_needs_no_start(watch: Watch, asked: str) -> None:
    done = watch(f"{STEPS}{asked}\n{REQUEUED}\n")
    assert (done.verdict.state, done.decision.action) == ("healthy", "none")


def test_a_cause_counts_also_where_the_job_requeued_itself(watch: Watch) -> None:
    oom = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    assert watch(f"{STEPS}{oom}\n+ scontrol requeue 7781\n{REQUEUED}\n").verdict.error_type == "oom"


def test_a_handler_that_was_warned_needs_no_start_once_it_asked_for_one(watch: Watch) -> None:
    warned = "submitit WARNING - Caught signal SIGUSR2 on n4: this job is preempted."
    alone = watch(f"{STEPS}{warned}\n")
    assert (alone.verdict.error_type, alone.decision.action) == ("preemption", "restart")
    asked = watch(f"{STEPS}{warned}\nsubmitit INFO - Requeued job 7781 (3 remaining timeouts)\n")
    assert (asked.verdict.state, asked.decision.action) == ("healthy", "none")


def test_a_job_that_slurm_requeued_was_taken_away(watch: Watch) -> None:
    assert watch(f"{STEPS}{REQUEUED}\n").verdict.error_type == "preemption"


def test_what_crashes_behind_the_job_s_success_is_its_closing(watch: Watch) -> None:
    done = watch(f"{STEPS}{DONE}\n[rank0]:Fatal Python error: Aborted\n")
    assert (done.verdict.state, done.decision.action) == ("healthy", "none")
    assert "reported its success" in done.verdict.remedy


def test_what_the_code_raises_behind_a_success_counts(watch: Watch) -> None:
    done = watch(f"{STEPS}{DONE}\n{frames('ValueError: cannot export the toy')}\n")
    assert done.verdict.root_line == "ValueError: cannot export the toy"


def of_a_thread(last: str) -> str:
    """The traceback of an exception that ended a thread."""
    return (
        "Exception in thread Thread-7:\nTraceback (most recent call last):\n"
        '  File "/usr/lib/python3.11/threading.py", line 1045, in _bootstrap_inner\n    self.run()\n'
        f'  File "/toy/ahead.py", line 9, in read\n    fetch()\n{last}'
    )


def test_what_a_thread_raises_behind_a_success_is_the_closing(watch: Watch) -> None:
    ahead = of_a_thread("ValueError: the toy is closed")
    assert watch(f"{STEPS}{DONE}\n{ahead}\n").verdict.state == "healthy"
    assert watch(f"{STEPS}{DONE}\n{ASKED_TO_STOP}\n").verdict.state == "healthy"
    assert watch(f"{STEPS}{ahead}\n").verdict.root_line == "ValueError: the toy is closed"


def test_a_thread_that_ended_long_before_did_not_preempt_the_job(watch: Watch) -> None:
    taken = "slurmstepd: error: *** JOB 7781 ON n1 CANCELLED AT 2026-03-02T12:00:01 DUE TO PREEMPTION ***"
    oom = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    assert watch(f"{STEPS}{of_a_thread(oom)}\n{taken}\n").verdict.root_line == taken
    assert watch(f"{STEPS}{frames(oom)}\n{taken}\n").verdict.root_line == oom
    assert watch(f"{STEPS}{of_a_thread(oom)}\n{CANCELLED}\n").verdict.root_line == oom


def test_a_worker_that_was_asked_to_stop_was_stopped_with_its_run(watch: Watch) -> None:
    assert watch(f"{STEPS}{frames(ASKED_TO_STOP)}\n").verdict.error_type == "cancelled"
    assert (
        watch(f"{STEPS}{frames('ValueError: no toy')}\n{ASKED_TO_STOP}\n").verdict.error_type == "exception"
    )


def test_a_general_error_of_the_collective_follows_from_its_timeout(watch: Watch) -> None:
    timeout = (
        "EI9999: 2026-03-02-10:42:00.204.495  The error from device(chipId:2, dieId:0), serial number is 9, "
        "hccl fftsplus task timeout occurred during task execution, stream_id:5"
    )
    assert (
        watch(f"{timeout}\n{frames('RuntimeError: ACL stream synchronize failed.')}\n").verdict.root_line
        == timeout
    )
    other = frames("ValueError: the toy broke", prefix="[rank3]: ")
    assert watch(f"{timeout}\n{other}\n").verdict.root_line == "[rank3]: ValueError: the toy broke"


NOT_LISTENING = "The server socket has failed to listen on any local network address."
IN_ENGLISH = f"[E socket.cpp:500] [c10d] {NOT_LISTENING}"
TOLD_QUIETLY = f"INFO:root:one process is enough then: {NOT_LISTENING}"
CANCELLED = "slurmstepd: error: *** JOB 7781 ON n1 CANCELLED AT 2026-03-02T12:00:01 ***"


def test_a_port_that_the_program_did_without_ended_nothing(watch: Watch) -> None:
    assert watch(f"{IN_ENGLISH}\n{TOLD_QUIETLY}\n").decision.action == "none"
    cancelled = watch(f"{IN_ENGLISH}\n{TOLD_QUIETLY}\n{CANCELLED}\n")
    assert cancelled.verdict.root_line == CANCELLED


def test_a_program_that_did_without_the_port_and_then_lacks_its_group_failed_of_the_port(
    watch: Watch,
) -> None:
    lacks = "ValueError: Default process group has not been initialized, please make sure to call "
    raised = frames(lacks + "init_process_group.")
    done = watch(f"{IN_ENGLISH}\n{TOLD_QUIETLY}\n{raised}\n")
    assert (done.verdict.error_type, done.verdict.root_line) == ("port_in_use", IN_ENGLISH)


def test_a_port_that_the_program_needed_ended_it(watch: Watch) -> None:
    raised = frames(f"RuntimeError: {NOT_LISTENING}")
    assert watch(f"{IN_ENGLISH}\n{raised}\n").verdict.error_type == "port_in_use"
    assert watch(f"{TOLD_QUIETLY}\n{IN_ENGLISH}\n{raised}\n").verdict.error_type == "port_in_use"


def test_the_port_of_nccl_for_questions_is_beside_the_job(watch: Watch) -> None:
    taken = "NCCL WARN Call to bind failed: Address already in use"
    assert watch(f"n4:88:90 [0] ras/client_support.cc:181 {taken}\n").decision.action == "none"
    assert watch(f"n4:88:90 [0] misc/socket.cc:181 {taken}\n").verdict.error_type == "port_in_use"


def test_a_worker_that_the_launcher_killed_met_no_memory_killer(watch: Watch) -> None:
    agent = "W0302 11:53:14.8 4121 torch/distributed/elastic/multiprocessing/api.py:919] Unable to shutdown"
    forced = f"{agent} process 4188 via 15, forcefully exiting via 9"
    summary = "  exitcode  : -9 (pid: 4188)\n  traceback : Signal 9 (SIGKILL) received by PID 4188"
    done = watch(f"{STEPS}{GLOO}\n{forced}\n{summary}\n")
    assert done.verdict.root_line == GLOO
    assert watch(f"{STEPS}{GLOO}\n{summary}\n").verdict.error_type == "host_oom"


def test_hundreds_of_ranks_that_raise_behind_their_waits_hide_no_wait(watch: Watch) -> None:
    """More lines than detect holds: the reports of a few ranks explain the exceptions of all."""
    logs = [
        f"{WATCHDOG.replace('ank2', f'ank{rank}').replace('Rank 2', f'Rank {rank}')}\n"
        f"[rank{rank}]: RuntimeError: the collective of the toy was torn\n[rank{rank}]: bye\n"
        for rank in range(400)
    ]
    assert watch(*logs).verdict.error_type == "nccl_timeout"
    own = "[rank7]: RuntimeError: the toy lost its connection to the data"
    assert watch(*logs, f"{own}\n").verdict.root_line == own


LOST = "torch.distributed.DistNetworkError: Failed to recv, got 0 bytes. Connection was likely closed."
NOT_CLOSED = (
    "[W] The node 'n2_91_0' has failed to shutdown the rendezvous 'toy' due to an error of type "
    "RendezvousConnectionError."
)


def test_a_meeting_that_is_closed_is_no_failure_unless_work_was_left(watch: Watch) -> None:
    assert watch(f"{LOST}\n{NOT_CLOSED}\n").decision.action == "none"
    left = watch(f"{STEPS}{LOST}\n{NOT_CLOSED}\n")
    assert (left.verdict.state, left.verdict.family) == ("failed", "comms")


BROKE = "RuntimeError: Connection reset by peer"


@pytest.mark.parametrize("speaker", ["", "[rank3]: ", "[toy:0]:"])
def test_a_launcher_that_dies_of_the_broken_link_closes_first(watch: Watch, speaker: str) -> None:
    said = "".join(f"{speaker}{line}\n" for line in frames(BROKE).splitlines())
    died = watch(f"{NOT_CLOSED}\n{said}")
    assert (died.verdict.root_line, died.decision.action) == (f"{speaker}{BROKE}", "hold")
    assert watch(f"{frames(BROKE)}\n{NOT_CLOSED}\n").decision.action == "none"


TAKEN = (
    "[rank5]:[E302 11:52:40.2 ProcessGroupNCCL.cpp:681] [Rank 5] Some NCCL operations have failed or timed "
    "out. Due to the asynchronous nature of CUDA kernels, subsequent GPU operations might run on "
    "corrupted/incomplete data."
)
REMOTE = (
    "[rank5]:[E302 11:52:40.3 ProcessGroupNCCL.cpp:1895] [PG ID 0 PG GUID 0(default_pg) Rank 5] Process "
    "group watchdog thread terminated with exception: NCCL error: remote process exited or there was a "
    "network error, NCCL version 2.21.5"
)
AT_WORK = (
    "[rank5]:[E302 11:52:40.1 ProcessGroupNCCL.cpp:1709] [PG 0 (default_pg) Rank 5] Timeout at NCCL work: "
    "70, last enqueued NCCL work: 82, last completed NCCL work: 69."
)


@pytest.mark.parametrize(
    ("lines", "root", "kind"),
    [
        pytest.param([TAKEN, REMOTE], REMOTE, "nccl", id="the watchdog says on its next line what failed"),
        pytest.param([TAKEN, AT_WORK], AT_WORK, "nccl_timeout", id="the work that timed out"),
        pytest.param([TAKEN], TAKEN, "nccl_timeout", id="the notice, where nothing says what failed"),
        pytest.param([AT_WORK], AT_WORK, "nccl_timeout", id="the work, where nothing else is held"),
        pytest.param(
            [TAKEN, REMOTE.replace("ank5", "ank6").replace("ank 5", "ank 6")],
            TAKEN,
            "nccl_timeout",
            id="another rank's failure is not this one's",
        ),
    ],
)
def test_the_watchdog_s_notice_gives_way_to_what_failed(
    watch: Watch, lines: list[str], root: str, kind: str
) -> None:
    done = watch(STEPS + "\n".join(lines) + "\n")
    assert (done.verdict.root_line, done.verdict.error_type) == (root, kind)


def test_a_failed_end_is_never_explained_away() -> None:
    for end, expected in ((from_exit_code(1), "failed"), (None, "healthy")):
        lines = f"{STEPS}{DONE}\n[rank0]:Fatal Python error: Aborted\n"
        assert ended(lines, end).verdict.state == expected
        assert ended(f"{LOST}\n{NOT_CLOSED}\n", end).verdict.state == expected


@pytest.mark.parametrize(
    ("lines", "action"),
    [("[rank0]:Fatal Python error: Aborted\n", "stop"), ("", "hold"), ("[rank0]: KeyError: 'x'\n", "stop")],
    ids=["crash of its closing", "no line", "a failure of its own"],
)
def test_a_bad_end_behind_success_says_so_and_starts_nothing(lines: str, action: str) -> None:
    done = ended(f"{STEPS}{DONE}\n{lines}", from_exit_code(1))
    assert (done.verdict.state, done.decision.action) == ("failed", action)
    assert "had reported its success in log:" in done.verdict.remedy


def test_a_node_that_failed_behind_success_starts_nothing() -> None:
    failed = from_text("JobID|State|ExitCode\n77|NODE_FAIL|0:1\n", "sacct")
    assert ended(f"{STEPS}{DONE}\n", failed).decision.action == "stop"
    assert ended(STEPS, failed).decision.action == "restart"


def ended(log: str, end: StartState | None) -> Replayed:
    policy = load_policy("verdict")
    book = Rulebook({policy.name: policy}, sign=lambda command: command, default_policy=policy.name)
    files = [LogFile("log", log.encode(), 0.0)]
    watched = watched_rules(("default",), scan=False)
    return replay("replay:file/log", files, watched, book, WatchLimits(), end=end)


def test_an_exception_of_another_rank_is_no_echo_of_a_timeout(watch: Watch) -> None:
    timeout = WATCHDOG.replace("rank2", "rank0").replace("Rank 2", "Rank 0")
    own = "[rank3]: RuntimeError: the toy lost its connection to the data"
    assert watch(f"{STEPS}{timeout}\n{own}\n").verdict.root_line == own


def test_thousands_of_waiting_ranks_cost_little() -> None:
    """Each line is asked once for each relation, and no relation goes through all lines for each line."""
    line = Line(text=GLOO, path="log", number=1, offset=0, time=0.0, node="n", rank=None)
    hit = Hit(
        "gloo_timeout", "consequence", "distributed_timeout", "distributed", "error", None, line, 1, "g"
    )
    asked = 0

    class Counted(list[Hit]):
        def __iter__(self) -> Iterator[Hit]:
            nonlocal asked
            asked += 1
            return super().__iter__()

    hits = Counted([hit] * 512)
    related(Surroundings(hits, [], over=True))
    assert asked < 10
