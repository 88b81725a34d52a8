"""What a program or its shell says last of an end, where no traceback tells it; each beside healthy kin."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

STEPS = "Epoch 3 step 40/900 loss 2.31\nEpoch 3 step 50/900 loss 2.30\n"
MORE = "Epoch 3 step 60/900 loss 2.29\nEpoch 3 step 70/900 loss 2.29\nEpoch 3 step 80/900 loss 2.28\n"
RAISED = 'Traceback (most recent call last):\n  File "train.py", line 5, in main\n'
RECEIVED = "received by PID 77 (TID 0x7f12) from PID 3; stack trace: ***"
WAITED = "waitForInput: socket SocketImpl(fd=31, remote=[n1]:29500)"
MEGASCALE = "E0302 11:53:01.77  7 toy.cc:7] Megascale detects a hang"
SLICE = "E0302 11:53:01.78  7 toy.cc:8] Detected failure SLICE_FAILURE_"
BAR = " 60%|######    | 1075/1790 [04:04<02:42, 4.40it/s]"


@pytest.mark.parametrize(
    ("last", "error_type"),
    [
        ("Training failed: the toy has no wheels", "exception"),
        ("ERROR:root:An error occurred during training: no wheels", "exception"),
        ("NaN detected in loss at step 51, stopping training", "numerical_instability"),
        ("Training interrupted by the user, the last weights are in toy.pt", "user_interrupt"),
        ("Caught Ctrl-C at step 51", "user_interrupt"),
        (f"{BAR}Killed", "host_oom"),
        (f"{BAR}Terminated", "cancelled"),
        ("段错误 (核心已转储)", "native_crash"),
        ("已放弃 (核心已转储)", "native_crash"),
        ("run.sh: 行 9: 4188 已杀死               python train.py", "host_oom"),
        ("  (1) INVALID_ARGUMENT:  Cannot batch tensors with different shapes in component 0.", "data"),
        (f"W0302 11:52:40.1 77 init.cc:7] *** SIGBUS (@0x7f01) {RECEIVED}", "host_oom"),
        ("memory allocation of 2048 bytes failed", "host_oom"),
        ("LLVM ERROR: Toy layout is not supported", "native_crash"),
        ("WARNING [train.py:7] (1/4) Grad scale is small: 4.1e-09", "numerical_instability"),
        ("[INFO] [logging.py:96] [Rank 0] step=400, skipped=390, lr=[1e-05]", "numerical_instability"),
        (f"[W302 11:53:01 socket.cpp:7] [c10d] {WAITED} timed out after 60000ms", "distributed_timeout"),
        ("  traceback : Signal 7 (SIGBUS) received by PID 77", "host_oom"),
        ("*** Check failure stack trace: ***", "native_crash"),
        (f"{SLICE}WORKER_UNAVAILABLE in session 7ab;", "distributed_timeout"),
        (f"{MEGASCALE} that is likely caused by running different modules on different devices.", "desync"),
        ("CalledProcessError: Command 'toy' died with <Signals.SIGSEGV: 11>.", "native_crash"),
        (f"{BAR[:-1]}, loss=nan, v_num=, reduced_train_loss=nan, global_step=51.0]", "numerical_instability"),
        ("[ERROR] PRE_ACT(77): alloc size : 512 is more than total mem size : 4200.", "oom"),
    ],
)
def test_the_last_words_of_a_program_tell_its_end(watch: Watch, last: str, error_type: str) -> None:
    done = watch(f"{STEPS}{last}\n")
    assert (done.verdict.error_type, done.verdict.root_line.strip()) == (error_type, last.strip())
    assert done.decision.action in ("stop", "hold")


@pytest.mark.parametrize(
    "line",
    [
        "Training failed: the toy has no wheels",
        "An error occurred during training: no wheels",
        "press Ctrl-C to stop the training",
        "已杀死服务器进程: 4188",
        "the toy takes LLVM ERROR: lines out of its log",
        "WARNING [train.py:7] (1/4) Grad scale is small: 0.0041",
        "[INFO] [logging.py:96] [Rank 0] step=400, skipped=39, lr=[1e-05]",
        "[INFO] [logging.py:96] [Rank 0] step=20, skipped=16, lr=[1e-05]",
        f"[W302 11:53:01 socket.cpp:7] [c10d] {WAITED} returned 0, likely a timeout",
        "memory allocation of the toys: 2048 bytes, 0 failed",
        f"{BAR[:-1]}, loss=nan, v_num=, reduced_train_loss=3.910, global_step=51.0]",
        "Session 77ab is not found in the cache, a new one is made",
        f"{MEGASCALE} but cannot determine the root cause.",
        "SLICE_FAILURE_THRESHOLD = 5",
    ],
)
def test_a_run_that_goes_on_behind_such_words_is_well(watch: Watch, line: str) -> None:
    assert watch(f"{STEPS}{line}\n{MORE}").verdict.state != "failed"


def test_a_worker_that_was_started_again_knows_no_session_of_the_run(watch: Watch) -> None:
    done = watch(f"{STEPS}Exception in device=TPU:1: Aborted: Session 77ab is not found.\n")
    assert (done.verdict.error_type, done.decision.action) == ("communication", "restart")


@pytest.mark.parametrize(
    ("cause", "error_type"),
    [
        ("but cannot determine the root cause.", "distributed_timeout"),
        ("that is likely caused by bad TPU chips on the following hosts.", "hardware"),
        ("that is likely caused by a networking issue.", "communication"),
    ],
)
def test_a_hang_between_slices_is_worth_a_restart(watch: Watch, cause: str, error_type: str) -> None:
    done = watch(f"{STEPS}{MEGASCALE} {cause}\n")
    assert (done.verdict.error_type, done.decision.action) == (error_type, "restart")


def test_a_chip_that_broke_beats_the_slice_that_it_took_down(watch: Watch) -> None:
    session = (
        "E0302 11:53:01.77  7 toy.cc:7] Session master detected TPU session error from worker toy:8471. "
    )
    broke = f"{SLICE}CHIP_DRIVER_ERROR in session 7ab;"
    done = watch(f"{STEPS}{session}\n{broke}\n")
    assert (done.verdict.error_type, done.verdict.root_line) == ("hardware", broke)


def test_a_program_that_halted_beats_the_slice_that_was_given_up(watch: Watch) -> None:
    halted = "jax.errors.JaxRuntimeError: INTERNAL: Accelerator device halted prematurely"
    assert (
        watch(f"{STEPS}{RAISED}{halted}\n{SLICE}SW_INJECT_ERROR in session 7ab;\n").verdict.root_line
        == halted
    )


def test_the_traceback_beats_what_the_program_says_of_it(watch: Watch) -> None:
    log = f"{STEPS}{RAISED}ValueError: no wheels\nTraining failed: no wheels\n"
    assert watch(log).verdict.root_line == "ValueError: no wheels"


def test_what_breaks_behind_a_programs_word_of_an_interrupt_follows_from_it(watch: Watch) -> None:
    log = f"{STEPS}CRITICAL Keyboard interrupt. Leaving.\n{RAISED}KeyError: 'wheels'\n"
    assert watch(log).verdict.root_line == "CRITICAL Keyboard interrupt. Leaving."


def test_workers_whose_ignored_tracebacks_mix_did_not_end_a_run_that_completed(watch: Watch) -> None:
    note, gone = "Exception ignored in: <function Toy.__del__ at 0x7f>", "AttributeError: no wheels"
    frame = '  File "toy.py", line 5, in __del__'
    head = "Traceback (most recent call last):"
    mixed = f"{BAR}{note}\n{note}\n{head}\n{head}\n{frame}\n{frame}\n{gone}\n{gone}\n"
    assert watch(f"{STEPS}{mixed}Training complete in 12m 40s\n").verdict.state != "failed"
    assert watch(f"{STEPS}{head}\n{head}\n{frame}\n{frame}\n{gone}\n{gone}\n").verdict.state == "failed"


THROWN = (
    "java.lang.IllegalStateException: the toys are not loaded\n"
    "\tat org.toy.Box.next(Box.java:155)\n"
    "\tat org.toy.Train.main(Train.java:44)\n"
    "Caused by: java.util.concurrent.ExecutionException: a toy is missing\n"
    "\tat java.util.concurrent.FutureTask.get(FutureTask.java:192)\n"
    "\t... 2 more\n"
    "Caused by: java.lang.IllegalArgumentException: toys have three wheels\n"
    "\tat org.toy.Wheel.count(Wheel.java:12)\n"
)


def test_the_innermost_cause_of_a_stack_of_the_jvm_is_the_root(watch: Watch) -> None:
    done = watch(f"{STEPS}{THROWN}")
    assert done.verdict.root_line == "Caused by: java.lang.IllegalArgumentException: toys have three wheels"


def test_a_later_exception_of_the_jvm_is_no_cause_of_the_first(watch: Watch) -> None:
    first = "java.lang.IllegalStateException: no box\n\tat org.toy.Box.next(Box.java:155)\n"
    done = watch(f"{STEPS}{first}java.lang.ToyException: closed\n{THROWN}")
    assert done.verdict.root_line == "java.lang.IllegalStateException: no box"


def test_a_full_memory_of_the_jvm_beats_the_exception_around_it(watch: Watch) -> None:
    log = THROWN.replace("IllegalArgumentException: toys have three wheels", "OutOfMemoryError: Metaspace")
    done = watch(f"{STEPS}{log}")
    assert (done.verdict.error_type, done.decision.action) == ("host_oom", "stop")


def test_a_score_that_is_no_number_counts_until_a_number_follows(watch: Watch) -> None:
    scores = [f"ScoreIterationListener - Score at iteration {step} is 1.{step}" for step in range(10, 40)]
    log = "\n".join([*scores, "ScoreIterationListener - Score at iteration 40 is NaN"])
    assert watch(f"{log}\n").verdict.error_type == "numerical_instability"
    assert watch("\n".join(scores) + "\n").verdict.state != "failed"


def test_an_operation_without_device_memory_is_known_though_logged_as_a_warning(watch: Watch) -> None:
    failed = (
        "2026-03-02 11:52:40.118290: W tensorflow/core/framework/op_kernel.cc:1273] OP_REQUIRES failed at "
        "toy_op.cc:20 : Resource exhausted: OOM when allocating tensor with shape[4,4]\n"
    )
    assert watch(failed).verdict.error_type == "oom"
    assert watch(f"{STEPS}{failed}{MORE}").verdict.state != "failed"
