"""What ends a job behind its word of success comes from its closing, unless it had begun to train again."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch
from unit.agents.detect.diagnosis.test_cascades import frames

_STEP = (
    " iteration {0:8d}/ 900 | consumed samples: 64 | elapsed time per iteration (ms): 95.0 | lm loss: 2.1 |\n"
)
STEPS = "".join(_STEP.format(n) for n in (1, 2, 3))
AGAIN = "".join(_STEP.format(n) for n in (4, 5, 6))
DONE = "[after training is done] datetime: 2026-03-02 14:00:00 \n"
LIMIT = "slurmstepd: error: *** STEP 7781.0 ON n1 CANCELLED AT 2026-03-02T12:00:01 DUE TO TIME LIMIT ***\n"
CANCELLED = "slurmstepd: error: *** STEP 7781.0 ON n1 CANCELLED AT 2026-03-02T12:00:01 ***\n"
ENDED = "srun: error: n1: task 0: Terminated\n"
ASKED = "Terminated\nsrun: error: n1: task 0: Exited with exit code 143\n"
THROWN = (
    "terminate called after throwing an instance of 'c10::DistBackendError'\n"
    "  what():  NCCL error in: /src/NCCLUtils.cpp:77, invalid usage (run with NCCL_DEBUG=WARN for details)\n"
    "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.\n"
    "run.sh: line 9: 4188 Aborted                 (core dumped) python train.py\n"
)
RAISED = frames("torch.distributed.DistBackendError: NCCL error in: /src/toy.cpp:7, unhandled system error")


LEFT = "(raylet) A worker died or was killed while executing a task by an unexpected system error.\n"


@pytest.mark.parametrize(
    "last", [LIMIT + ENDED, CANCELLED + ENDED, ASKED, THROWN, THROWN + LIMIT + ENDED, LEFT]
)
def test_a_process_that_did_not_close_by_itself_had_done_its_work(watch: Watch, last: str) -> None:
    done = watch(f"{STEPS}{DONE}{last}")
    assert (done.verdict.state, done.decision.action) == ("healthy", "none")
    assert "reported its success" in done.verdict.remedy
    assert watch(f"{STEPS}{last}").verdict.state == "failed"


@pytest.mark.parametrize("last", [LIMIT + ENDED, THROWN, "Fatal Python error: Aborted\n"])
def test_a_job_that_trains_again_has_not_ended(watch: Watch, last: str) -> None:
    assert watch(f"{STEPS}{DONE}{AGAIN}{last}").verdict.state == "failed"
    lagged = _STEP.format(3)
    assert watch(f"{STEPS}{DONE}{lagged}{last}").verdict.state == "healthy"


SAVED = "Training completed. Do not forget to share your model on huggingface.co/models =)\n"
FITTED = "`Trainer.fit` stopped: `max_epochs=1` reached.\n"
KILLED = "sweep.sh: line 7: 4188 Segmentation fault      (core dumped) python toy.py --lr 3\n"


def dictionaries(*epochs: float) -> str:
    line = "{{'loss': 2.1, 'grad_norm': 0.9, 'learning_rate': 1.5e-05, 'epoch': {:.2f}}}\n"
    return "".join(line.format(epoch) for epoch in epochs)


def bars(epoch: int, *batches: int, loss: str = "loss=1.7") -> str:
    line = "Epoch {}:  44%|####4     | {}/50 [00:10<00:13,  2.10it/s, {}]\n"
    return "".join(line.format(epoch, batch, loss) for batch in batches)


@pytest.mark.parametrize("last", [KILLED, LIMIT, "srun: error: n1: task 0: Exited with exit code 1\n"])
@pytest.mark.parametrize(
    ("first", "again", "short"),
    [
        (dictionaries(2.99, 3) + SAVED, dictionaries(0.01, 0.02, 0.03), dictionaries(3)),
        (bars(0, 49, 50) + FITTED, bars(0, 1, 2, 3), bars(0, 50, 50, 50)),
    ],
)
def test_a_loop_without_steps_that_goes_round_behind_the_success_trains_again(
    watch: Watch, first: str, again: str, short: str, last: str
) -> None:
    assert watch(f"{first}{again}{last}").verdict.state == "failed"
    assert watch(f"{first}{short}{last}").verdict.state == "healthy"
    assert watch(f"{first}{again}{first}{last}").verdict.state == "healthy"


@pytest.mark.parametrize(
    "closing",
    [
        "Evaluating:  40%|####      | {}/10 [00:04<00:06,  1.01it/s, loss=2.31]\n",
        " 40%|####      | {}/10 [00:04<00:06,  1.01it/s]\n",
        "export of shard {} of 9\n",
    ],
)
def test_an_evaluation_or_an_export_behind_the_success_is_no_training(watch: Watch, closing: str) -> None:
    rounds = "".join(closing.format(number) for number in range(2, 9))
    done = watch(f"{dictionaries(2.99, 3)}{SAVED}{rounds}{KILLED}")
    assert (done.verdict.state, done.decision.action) == ("healthy", "none")


@pytest.mark.parametrize("last", [f"{RAISED}\n", THROWN + frames("ValueError: cannot export the toy") + "\n"])
def test_what_a_collective_or_the_code_raises_behind_a_success_counts(watch: Watch, last: str) -> None:
    assert watch(f"{STEPS}{DONE}{last}").verdict.state == "failed"


@pytest.mark.parametrize(
    "last",
    [
        "requests.exceptions.HTTPError: 503 Server Error: Busy for url: https://toy.example.org",
        "ConnectionResetError: [Errno 104] Connection reset by peer",
        "OSError: [Errno 116] Stale file handle: '/toy/final'",
    ],
)
def test_no_whole_training_is_started_again_for_what_failed_behind_its_success(
    watch: Watch, last: str
) -> None:
    done = watch(f"{STEPS}{DONE}{frames(last)}\n")
    assert (done.verdict.state, done.decision.action) == ("failed", "hold")
    assert watch(f"{STEPS}{frames(last)}\n").decision.action == "restart"
    assert watch(f"{STEPS}{DONE}{AGAIN}{frames(last)}\n").decision.action == "restart", "it had begun again"


IGNORED = (
    "Exception ignored in: <function _MultiProcessingDataLoaderIter.__del__ at 0x7f0000000070>\n"
    + frames("RuntimeError: DataLoader worker (pid 4188) is killed by signal: Aborted. ")
    + "\n"
)
GAVE_UP = "terminate called without an active exception\n"


def test_a_worker_of_a_loader_that_is_being_closed_may_give_up(watch: Watch) -> None:
    assert watch(f"{STEPS}{GAVE_UP}{IGNORED}Loss of the toy: 11.4\n").verdict.state == "healthy"
    assert watch(f"{STEPS}{GAVE_UP}").verdict.error_type == "native_crash"


def test_native_code_that_gives_up_behind_an_interrupt_follows_from_it(watch: Watch) -> None:
    again = "Error in atexit._run_exitfuncs:\n" + frames("KeyboardInterrupt") + "\n"
    done = watch(f"{STEPS}{frames('KeyboardInterrupt')}\n{again}{GAVE_UP}")
    assert (done.verdict.error_type, done.decision.action) == ("user_interrupt", "hold")


THROWN = (
    "terminate called after throwing an instance of 'toy::Error'\n  what():  CUDA error: misaligned address\n"
)


def test_what_a_destructor_meets_on_the_card_follows_from_the_exception_above(watch: Watch) -> None:
    assert (
        watch(f"{STEPS}{frames('IndexError: wheel 7')}\n{THROWN}").verdict.root_line == "IndexError: wheel 7"
    )
    alone = watch(f"{STEPS}{THROWN}").verdict
    assert (alone.error_type, alone.root_line) == ("torch", "  what():  CUDA error: misaligned address")
    work = "".join(f"toy {n} is painted\n" for n in range(50))
    far = watch(f"{frames('IndexError: wheel 7')}\n{work}{THROWN}").verdict
    assert far.error_type == "torch"
    caught = frames("IndexError: wheel 7").replace("<module>", "paint")
    assert watch(f"{STEPS}{caught}\n{THROWN}").verdict.error_type == "torch"


SHUT = "Exception ignored in: <function Toy.__del__ at 0x7f0000000070>\n" + frames(
    "TypeError: 'NoneType' object is not callable"
)
CRASHED = "\nSegmentation fault (core dumped)\n"


def test_a_crash_while_python_shuts_down_ended_no_script(watch: Watch) -> None:
    assert watch(f"{STEPS}{SHUT}{CRASHED}").verdict.state == "healthy"
    assert watch(f"{STEPS}{CRASHED}").verdict.error_type == "native_crash"
    other = SHUT.replace("'NoneType' object is not callable", "the toy is not callable")
    assert watch(f"{STEPS}{other}{CRASHED}").verdict.error_type == "native_crash"
    assert watch(f"{STEPS}{frames('KeyError: 7')}\n{SHUT}{CRASHED}").verdict.root_line == "KeyError: 7"


_LOST = "n2:88:90 [0] misc/toy.cc:50 NCCL WARN socketProgress: Connection closed by remote peer n1<45074>\n"
_EXITED = "srun: error: n1: task 0: Exited with exit code 1\n"
_ABORTED = "run.sh: line 9: {} Aborted                 (core dumped) python toy.py\n"
_TASK = "srun: error: n2: task 1: Exited with exit code 134\n"


def test_an_abort_of_a_process_that_had_lost_its_peer_is_no_cause(watch: Watch) -> None:
    missing = 'Lmod has detected the following error: These module(s) exist but cannot be loaded: "toy"\n'
    for start in ("", missing):  # what was missing at the start did not keep the ranks from meeting
        done = watch(start + _EXITED + _ABORTED.format(88) + _TASK + "\n" + _LOST)
        assert (done.verdict.root_line, done.decision.action) == (_EXITED.strip(), "hold")


def test_an_abort_of_another_process_is_one(watch: Watch) -> None:
    for aborted in (_ABORTED.format(77), _ABORTED.format(77) + _ABORTED.format(88)):
        done = watch(aborted + _TASK + _LOST)
        assert (done.verdict.root_line, done.verdict.error_type) == (
            _ABORTED.format(77).strip(),
            "native_crash",
        )


def not_closed(operation: str) -> str:
    return (
        "7: [E302 11:52:40.1 ProcessGroupNCCL.cpp:541] [Rank 7] found async exception when checking for NCCL"
        " errors: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)\n"
        "7: ncclSystemError: System call (e.g. socket, malloc) or external library call failed.\n"
        "7: Last error:\n"
        f"7: [Proxy Service 7] Failed to execute operation {operation} from rank 7, retcode 3\n"
    )


def test_nccl_that_could_not_close_a_link_fails_no_job(watch: Watch) -> None:
    assert watch(f"{STEPS}{DONE}{not_closed('Close')}").verdict.state == "healthy"
    assert watch(f"{STEPS}{DONE}{not_closed('Connect')}").verdict.error_type == "nccl"
    raised = watch(f"{STEPS}{RAISED}\n{not_closed('Close')}")
    assert (raised.verdict.error_type, raised.verdict.root_line) == ("nccl", RAISED.splitlines()[-1])
