"""What is said of a failure that no rule knows: any ending, in any shell or language, behind any prefix."""

from __future__ import annotations

import pytest

from midwatch.streams.records.error_types import family
from unit.agents.conftest import Watch
from unit.agents.detect.diagnosis.test_cascades import HANDLING, frames

DIRECT = "The above exception was the direct cause of the following exception:"


def ended_by(signal: str) -> str:
    return f"subprocess.CalledProcessError: Command '['python', 'toy.py']' died with <Signals.{signal}>."


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("run.sh: line 9:  4188 Killed                  python toy.py", "memory"),
        ("run.sh: line 9:  4188 Bus error               python toy.py", "memory"),
        ("run.sh: line 9:  4188 Segmentation fault      python toy.py", "code"),
        ("run.sh: line 9:  4188 Aborted                 ./toy", "code"),
        ("run.sh: line 9:  4188 Terminated              python toy.py", "stopped"),
        ("zsh: killed     python toy.py", "memory"),
        ("[1]  + 4188 segmentation fault  python toy.py", "code"),
        ("Command terminated by signal 9", "memory"),
        ("Process finished with exit code 137 (interrupted by signal 9: SIGKILL)", "memory"),
        ("Process finished with exit code 134 (interrupted by signal 6: SIGABRT)", "code"),
        (ended_by("SIGKILL: 9"), "memory"),
        (ended_by("SIGSEGV: 11"), "code"),
        (ended_by("SIGTERM: 15"), "stopped"),
        ("  exitcode  : -9 (pid: 88)", "memory"),
        ("  exitcode  : -11 (pid: 88)", "code"),
        ("  exitcode  : -15 (pid: 88)", "stopped"),
        ("  exitcode  : 1 (pid: 88)", "code"),
        ("make: *** [Makefile:12: train] Error 1", "code"),
        ("worker exited with code 3", "code"),
        ("container exited with status 137", "memory"),
        ("=   EXIT CODE: 9", "memory"),
    ],
)
def test_any_end_of_a_process_is_a_failure_of_its_kind(watch: Watch, line: str, kind: str) -> None:
    done = watch(f"loading the toy\n{line}\n")
    assert family(done.verdict.error_type) == kind
    assert done.verdict.root_line == line
    assert done.decision.action in ("stop", "hold")


@pytest.mark.parametrize(
    "log",
    [
        "thread 'main' panicked at src/toy.rs:10:5:\nindex out of bounds: the len is 3 but the index is 7",
        'Exception in thread "main" org.toy.ToyError: not ready\n\tat org.toy.Train.main(Train.java:7)',
        "panic: runtime error: index out of range [3] with length 3\n\ngoroutine 1 [running]:",
        "ERROR: LoadError: BoundsError: attempt to access 3-element Vector at index [4]",
        "Error in fit(x, y) : the toy is broken\nCalls: main -> fit",
        "realloc(): invalid next size\nAborted (core dumped)",
        "Fatal Python error: init_sys_streams: can't initialize sys standard streams",
    ],
)
def test_other_languages_have_tracebacks_too(watch: Watch, log: str) -> None:
    done = watch(f"loading the toy\n{log}\n")
    assert family(done.verdict.error_type) == "code"
    assert done.verdict.root_line == log.partition("\n")[0]
    assert done.decision.action in ("stop", "hold")


@pytest.mark.parametrize("last", ["toy.registry.NoSuchOptimizer: adamz", "queue.Empty", "toy.Refused:"])
def test_an_exception_may_be_called_anything(watch: Watch, last: str) -> None:
    done = watch(frames(last, prefix="[rank2]: "))
    assert (done.verdict.error_type, done.verdict.root_line) == ("exception", f"[rank2]: {last}")


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        ("5] Input/output error", "infra"),
        ("12] Cannot allocate memory", "memory"),
        ("28] No space left on device", "infra"),
        ("30] Read-only file system", "infra"),
        ("98] Address already in use", "comms"),
        ("101] Network is unreachable", "comms"),
        ("111] Connection refused", "comms"),
        ("113] No route to host", "comms"),
        ("116] Stale file handle", "infra"),
        ("122] Disk quota exceeded", "infra"),
    ],
)
def test_the_number_of_an_error_tells_its_family(watch: Watch, number: str, kind: str) -> None:
    verdict = watch(frames(f"OSError: [Errno {number}")).verdict
    assert family(verdict.error_type) == kind


PREFIXES = [
    "",
    "[rank3]: ",
    "[default3]:",
    "[1,0]<stderr>:",
    "(Worker pid=77, ip=10.0.0.1) ",
    "3: ",
    "n4: ",
    "0: [rank0]: ",
    "[0] ",
    "algo-1-toy_1  | ",
    "ERROR:root:",
    "stderr: ",
    "INFO - stderr - ",
    "705.1s\t1504\t",
    "2026-03-02 11:52:40,118 ERROR ",
    "[2026-03-02 11:52:40,118] ",
    "2026-03-02T11:52:40.118290Z ",
    "2026-03-02T11:52:40.118290Z stderr F ",
    "E0302 11:52:40.118290 77 train.py:5] ",
]


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("joined", [DIRECT, HANDLING], ids=["cause", "handling"])
def test_the_first_exception_of_a_chain_is_found_behind_any_prefix(
    watch: Watch, prefix: str, joined: str
) -> None:
    log = "\n".join(
        [
            frames("ZeroDivisionError: toys by nought", prefix=prefix),
            prefix,
            f"{prefix}{joined}",
            prefix,
            frames("toy.EpochError: epoch 3 failed", prefix=prefix),
        ]
    )
    assert watch(log).verdict.root_line == f"{prefix}ZeroDivisionError: toys by nought"


def test_the_clock_in_front_of_each_line_may_go_on(watch: Watch) -> None:
    lines = frames("AttributeError: no toy").split("\n")
    ticking = (f"[2026-03-02 11:52:4{second},118] {line}" for second, line in enumerate(lines))
    ignored = "[2026-03-02 11:52:40,001] Exception ignored in: <function Toy.__del__ at 0x7f>"
    assert watch("\n".join([ignored, *ticking])).verdict.state != "failed"


def test_an_error_that_a_logger_only_words_is_none_of_a_traceback(watch: Watch) -> None:
    steps = [f"step: {n}  loss:  2.1  grad_norm:  0.3" for n in range(1, 4)]
    log = ["2026-03-02 11:52:40,118 ERROR ValueError: reward 3 was not a number, set to 0", *steps]
    assert watch("\n".join(log)).verdict.state != "failed"


@pytest.mark.parametrize(
    "line",
    [
        "GET /toys finished with status 200",
        "download of shard 3 failed with status code 503, again in 2 s",
        "connect to n4 failed: [Errno 111] Connection refused (attempt 2 of 60)",
        "the heartbeat timeout is set to 600 s",
        "could not find arguments in the checkpoint ...",
        "loading the optimizer state dict of step 40",
        "early stopping patience: 2 of 5",
        "all workers exited with code 0",
        "epoch done: Out of range: End of sequence",
    ],
)
def test_words_of_failures_in_a_run_that_is_well(watch: Watch, line: str) -> None:
    steps = [f"step: {n}  loss:  2.1  grad_norm:  0.3" for n in range(1, 4)]
    assert watch("\n".join([*steps, line])).verdict.state != "failed"


def test_a_traceback_that_tells_of_a_further_try_ended_nothing(watch: Watch) -> None:
    log = "request 3 failed, retrying in 2 s\n" + frames("toy.net.ConnectionError: no answer")
    steps = [f"step: {n}  loss:  2.1  grad_norm:  0.3" for n in range(1, 4)]
    assert watch("\n".join([*steps, log])).verdict.state != "failed"


@pytest.mark.parametrize(
    "log",
    [
        frames("TimeoutError: the queue gave nothing in 60 s"),
        frames("ConnectionResetError: [Errno 104] Connection reset by peer"),
        "(raylet) A worker died or was killed while executing a task by an unexpected system error.",
        "torch.distributed.elastic.multiprocessing.api.SignalException: Process 77 got signal: 2",
        "run.sh: line 9: 4188 Terminated              python toy.py",
        "E0302 11:52:45.3 9 api.py:874] failed (exitcode: -15) local_rank: 2 (pid: 88) of binary: python3",
        "FatalError: `Termination signal` is detected by the operating system.",
        "OSError: [Errno 30] Read-only file system: '/data/toy'",
        "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-03-02T12:00:01 DUE TO TIME LIMIT ***",
    ],
)
def test_nothing_is_started_again_without_a_word_that_it_may_go_better(watch: Watch, log: str) -> None:
    assert watch(f"loading the toy\n{log}\n").decision.action in ("stop", "hold")


CANCELLED = "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-03-02T12:00:01 ***"


def test_who_interrupts_srun_cancels_the_step_himself(watch: Watch) -> None:
    asked = "^Csrun: sending Ctrl-C to StepId=7.0"
    done = watch(f"{asked}\nsrun: Job step aborted: Waiting up to 47 seconds\n{CANCELLED}\n")
    assert (done.verdict.error_type, done.verdict.root_line) == ("user_interrupt", asked)
    assert done.decision.action == "hold"


def test_a_step_that_srun_ends_after_its_first_task_left_was_cancelled_by_nobody(watch: Watch) -> None:
    left = "srun: StepId=7.0 task 1: exited abnormally"
    done = watch(f"srun: First task exited 60s ago\n{left}\nsrun: Terminating StepId=7.0\n{CANCELLED}\n")
    assert (done.verdict.error_type, done.verdict.root_line) == ("exception", left)
    assert done.decision.action == "hold"


def test_tasks_that_srun_killed_behind_its_abort_met_no_full_memory(watch: Watch) -> None:
    aborted = "srun: Job step aborted: Waiting up to 47 seconds for job step to finish."
    killed, left = "srun: error: n1: tasks 0,2-3: Killed", "srun: error: n1: task 1: Exited with exit code 1"
    done = watch(f"{aborted}\n{killed}\nsrun: Terminating StepId=7.0\n{left}\n")
    assert (done.verdict.error_type, done.verdict.root_line) == ("exception", left)
    assert watch(f"{killed}\n{aborted}\n{left}\n").verdict.error_type == "host_oom"
    assert watch(f"{aborted}\n{killed}\n").verdict.error_type == "host_oom"


CALLED_OFF = [
    "[n4:4188] *** An error occurred in MPI_Recv",
    "In: PMI_Abort(14, N/A)",
    "srun: Job step aborted: Waiting up to 47 seconds for job step to finish.",
    CANCELLED,
    "srun: error: n5: task 1: Killed",
    "srun: error: n4: task 0: Exited with exit code 14",
]


def test_a_step_that_its_own_task_called_off_was_cancelled_by_nobody(watch: Watch) -> None:
    done = watch("\n".join(CALLED_OFF))
    assert (done.verdict.error_type, done.verdict.root_line) == ("communication", CALLED_OFF[0])
    assert done.decision.action == "hold"


def test_a_step_that_was_cancelled_before_its_task_called_it_off_stays_cancelled(watch: Watch) -> None:
    done = watch("\n".join([*CALLED_OFF[2:4], CALLED_OFF[1], *CALLED_OFF[4:]]))
    assert (done.verdict.error_type, done.verdict.root_line) == ("cancelled", CANCELLED)


def test_a_payload_that_broke_off_may_go_better_next_time(watch: Watch) -> None:
    broke_off = "RuntimeError: Failed to get chunk 3: Response payload is not completed:"
    rest = "<ContentLengthError: 400, message='Not enough data to satisfy content length header"
    assert watch(f"{frames(broke_off)}\n{rest}\n").verdict.root_line == broke_off
    assert watch(f"{frames(broke_off)}\n{rest}\n").verdict.transient is True
    whole = "RuntimeError: Failed to get chunk 3: Response payload is empty"
    assert watch(f"{frames(whole)}\n").verdict.transient is not True


@pytest.mark.parametrize("step", [None, "step: 40  loss:  2.1  grad_norm:  0.3"])
def test_a_hang_that_is_only_reported_is_tried_again_if_the_run_ever_went(
    watch: Watch, step: str | None
) -> None:
    lines = [step] if step else []
    done = watch("\n".join([*lines, "ERROR: training appears to be stuck for 900 s"]))
    assert done.decision.action == ("restart" if step else "hold")


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("toy.ResourceExhaustedError: could not allocate a tensor of 3 GiB", "memory"),
        ("torch.toy.ToyError: OOM when allocating a wheel", "memory"),
        ("RuntimeError: CUDA error: uncorrectable SRAM error encountered", "infra"),
        ("ToyError: worker 3 is killed by signal: Killed.", "memory"),
        ("toyd: Detected 2 oom_kill events in job 77", "memory"),
        ("toyd: job 77 ends due to a pre-emption", "stopped"),
        ("toy.ToyPreemptionError: the nodes were taken", "stopped"),
        ("FATAL: container creation failed: no such image", "infra"),
        ("toyd has lost communication with a daemon on n4.", "comms"),
        ("ToyError: [toy.cc:7] Connection closed by peer [10.0.0.7]:4188", "comms"),
        ("E0302 11:52:40.118290 77 toy.cc:9] the toy got stuck for 480 seconds", "comms"),
        ("RuntimeError: RCCL error in toy.cc:77, the usage is wrong", "comms"),
        ("n4:77:78 [0] NCCL INFO include/net.h:28 -> 2", "comms"),
        ("ToyError: a reward must be a number, got nan (<class 'float'>)", "numerics"),
    ],
)
def test_words_that_many_programs_use_tell_the_family(watch: Watch, line: str, kind: str) -> None:
    done = watch(f"loading the toy\n{line}\n")
    assert (family(done.verdict.error_type), done.verdict.root_line) == (kind, line)


@pytest.mark.parametrize(
    "line",
    [
        "toyd: the group 0 is preempted because its cache is too small",
        "the connection to n4 is closed, all is well",
        "Uncorrectable errors: 0",
        "WARNING toy: the request timed out after 30 s, it is asked again",
        "n4:77:78 [0] NCCL INFO include/coll_net.h:21 -> 3",
        "n4:77:78 [0] NCCL INFO transport/net.cc:860 -> 3",
    ],
)
def test_the_same_words_of_a_program_that_goes_on_tell_nothing(watch: Watch, line: str) -> None:
    assert watch(f"step 1 loss 2.0\n{line}\nstep 2 loss 1.9\n").verdict.state == "healthy"
