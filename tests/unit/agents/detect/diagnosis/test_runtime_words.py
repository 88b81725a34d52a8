"""What the runtimes of accelerators and the launchers say of an end; each beside its kin."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch
from unit.agents.detect.diagnosis.test_cascades import frames

STEPS = "Epoch 3 step 40/900 loss 2.31\nEpoch 3 step 50/900 loss 2.30\n"
MORE = "Epoch 3 step 60/900 loss 2.29\nEpoch 3 step 70/900 loss 2.29\nEpoch 3 step 80/900 loss 2.28\n"
STAMP = "2026-Mar-02 11:52:40.118290 77:91"
ENC = f"{STAMP} ERROR   ENC:toy_ring_init   [rank 7, channel 0] failed to register the toy"
NRT = f"{STAMP} ERROR   NRT:toy_load   Failed to load the toy"
TDRV_OOM = f"{STAMP} ERROR  TDRV:toy_mem   Failed to allocate 4.000GB (alignment: none) on ND 3:NC 4"
TDRV_INDEX = f"{STAMP} ERROR  TDRV:toy_exec   [ND 3][NC 0] Out of bounds access on model toy.neff"
TAKEN = f"{STAMP} ERROR   NRT:toy_cores   NeuronCore(s) not available - Requested:4 Available:0"
NO_DEVICE = f"{STAMP} ERROR  TDRV:toy_info   No neuron device available"
RESET = "  what():  Read 0xffffffff from PCIE: you should reset the board."
ABORTED = "terminate called after throwing an instance of 'toy'\n"
CLOSING = "WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 4187 closing signal"
LATE = "        toySynchronize execute failed, reason=[task timeout][FUNC:ToyReason]"
FILES = (
    "(pid=raylet) F0302 11:52:40.1 88 toy_pool.cc:7] Failed to start a toy, system:24: Too many open files"
)
UNREGISTERED = (
    "(pid=77) F0302 11:52:41.2 77 77 toy_client.cc:7]  Check failed: _s.ok() [RayletClient] "
    "Unable to register worker with raylet.: IOError: toy"
)


@pytest.mark.parametrize(
    ("last", "error_type", "action"),
    [
        (ENC, "communication", "hold"),
        (TDRV_OOM, "oom", "stop"),
        (TDRV_INDEX, "torch", "stop"),
        (TAKEN, "hardware", "hold"),
        (f"{ABORTED}{RESET}", "hardware", "restart"),
        (f"{CLOSING} SIGHUP", "cancelled", "restart"),
        (f"{CLOSING} SIGINT", "user_interrupt", "hold"),
        (
            f"{frames('AbortedError: The same RunToy request was received twice. step_id: 7')}",
            "communication",
            "restart",
        ),
        (
            f"{frames('AbortedError: RecvToy expects a different device incarnation: 7 vs. 8. It went.')}",
            "communication",
            "restart",
        ),
        (
            f"{frames('toy.HubHTTPError: 504 Server Error: Gateway Time-out for url: https://toy.example.org')}",
            "communication",
            "restart",
        ),
    ],
)
def test_the_word_of_a_runtime_or_launcher_tells_the_end(
    watch: Watch, last: str, error_type: str, action: str
) -> None:
    done = watch(f"{STEPS}{last}\n")
    assert (done.verdict.error_type, done.decision.action) == (error_type, action)
    assert done.verdict.root_line.strip() == last.splitlines()[-1].strip()


@pytest.mark.parametrize(
    "line", [NO_DEVICE, "Read 0xffffffff from ARC: the toy was reset", "signal SIGHUP is kept"]
)
def test_kin_of_such_words_are_no_failure(watch: Watch, line: str) -> None:
    assert watch(f"{STEPS}{line}\n{MORE}").verdict.state != "failed"


def test_the_collective_that_could_not_be_set_up_beats_the_graph_that_could_not_be_loaded(
    watch: Watch,
) -> None:
    assert watch(f"{ENC}\n{NRT}\n").verdict.root_line == ENC
    assert watch(f"{NRT}\n").verdict.root_line == NRT


def test_a_card_that_needs_a_reset_beats_the_abort_that_tells_of_it(watch: Watch) -> None:
    crashed = "Aborted (core dumped)"
    assert watch(f"{ABORTED}{RESET}\n{crashed}\n").verdict.root_line.strip() == RESET.strip()
    assert watch(f"{ABORTED}  what():  no wheels\n{crashed}\n").verdict.error_type != "hardware"


def test_a_launcher_that_ends_the_others_itself_was_not_cancelled(watch: Watch) -> None:
    """torchrun sends SIGTERM of its own; any other signal it only passes on."""
    assert watch(f"{STEPS}{CLOSING} SIGTERM\n").verdict.error_type != "cancelled"


def test_a_rank_that_failed_before_the_terminal_closed_is_the_cause(watch: Watch) -> None:
    log = f"{STEPS}{frames('ValueError: no wheels')}\n{CLOSING} SIGHUP\n"
    assert watch(log).verdict.root_line == "ValueError: no wheels"


def test_a_task_of_the_card_that_was_late_is_a_timeout_until_something_says_why(watch: Watch) -> None:
    assert watch(f"{STEPS}{LATE}\n").verdict.error_type == "distributed_timeout"
    assert watch(f"{STEPS}{LATE.replace('task timeout', 'device task abort')}\n").verdict.state != "failed"
    killed = "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0."
    assert watch(f"{STEPS}{killed}\n{LATE}\n").verdict.root_line == killed


def test_the_limit_on_open_files_beats_the_worker_that_could_not_register(watch: Watch) -> None:
    done = watch(f"{STEPS}{FILES}\n{UNREGISTERED}\n")
    assert (done.verdict.root_line, done.decision.action) == (FILES, "stop")
    assert watch(f"{STEPS}{UNREGISTERED}\n").verdict.error_type == "communication"


def test_a_loss_that_is_no_number_at_its_last_step_ends_a_run(watch: Watch) -> None:
    lost = "Training loss (for one batch) at step 60: nan"
    assert watch(f"{STEPS}{lost}\n").verdict.error_type == "numerical_instability"
    assert watch(f"{STEPS}{lost.replace('nan', '2.29')}\n").verdict.state != "failed"


def test_a_server_that_broke_inside_is_not_asked_again_at_once(watch: Watch) -> None:
    broke = "toy.HubHTTPError: 500 Server Error: Internal Server Error for url: https://toy.example.org"
    assert watch(f"{STEPS}{frames(broke)}\n").decision.action != "restart"


def test_a_count_of_samples_left_out_is_not_about_the_exception_below_it(watch: Watch) -> None:
    raised = frames("AttributeError: the toy has no wheels")
    assert watch(f"7 samples have invalid sizes and will be skipped\n{raised}\n").verdict.state == "failed"
    assert watch(f"the toy is broken and will be skipped\n{raised}\n{MORE}").verdict.state != "failed"


def test_a_long_backtrace_behind_damaged_memory_is_no_work_that_goes_on(watch: Watch) -> None:
    damaged = "*** Error in `python': corrupted double-linked list: 0x00007f6600131520 ***"
    stack = "".join(f"/toy/lib/libtoy.so(_ZN3toy4free{n}Ev+0x4c)[0x7f6659c4{n:04x}]\n" for n in range(90))
    assert watch(f"{damaged}\n======= Backtrace: =========\n{stack}").verdict.root_line == damaged
    work = "".join(f"the toy took wheel {n} of its box\n" for n in range(90))
    assert watch(f"{damaged}\n{work}").verdict.state != "failed"


def test_the_last_word_of_a_graph_without_its_first_traceback_is_the_cause(watch: Watch) -> None:
    told = "FailedPreconditionError (see above for traceback): the toy is not filled"
    assert watch(f"{STEPS}{told}\n\t [[Node: toy = Toy[]()]]\n").verdict.root_line == told
    first = "toy.errors_impl.FailedPreconditionError: the toy is not filled"
    assert watch(f"{STEPS}{frames(first)}\n{told}\n").verdict.root_line == first


FATAL = "F0302 11:52:40.118290    4188 toy_server.cc:512] {}\n"
TRAINED = "".join(f"step: {n}  loss:  2.1  grad_norm:  0.3\n" for n in range(1, 4))


@pytest.mark.parametrize(
    ("words", "action"),
    [
        ("Check failed: toys.size() == 3 (2 vs. 3)", "stop"),
        ("lost sight of 1 of 3 toys", "hold"),
        ("Checking the toys took too long", "hold"),
    ],
)
def test_a_library_that_ends_its_process_is_permanent_only_by_a_failed_check(
    watch: Watch, words: str, action: str
) -> None:
    done = watch(TRAINED + FATAL.format(words))
    assert (done.verdict.state, done.verdict.error_type, done.decision.action) == (
        "failed",
        "exception",
        action,
    )


def test_a_library_that_ends_its_process_for_memory_says_so(watch: Watch) -> None:
    done = watch(TRAINED + FATAL.format("RESOURCE_EXHAUSTED: Out of memory allocating 81920 bytes."))
    assert (done.verdict.error_type, done.decision.action) == ("oom", "stop")


@pytest.mark.parametrize("by", ["toy_server", "megascale_toy"])
def test_a_hang_stands_above_the_abort_that_megascale_made_of_it(watch: Watch, by: str) -> None:
    hang = "E0302 11:52:39.1    4188 megascale_toy.cc:190] Megascale hang detected: waited for 3 toys\n"
    done = watch(TRAINED + hang + FATAL.replace("toy_server", by).format("the toys are ended, as asked"))
    waited = by == "megascale_toy"
    assert (done.verdict.rule, done.decision.action) == (
        ("jax_peer_died", "restart") if waited else ("glog_died", "hold")
    )


RERUN = "ERROR:megatron.core.rerun_state_machine:"
UNEXPECTED = (
    RERUN + "Unexpected result nan at /toy/train.py line 77, invokation #1 at iteration #4 "
    "(message='found NaN in local forward loss calculation')\n"
)
LEFT = "E0302 12:20:33.7 77 api.py:869] failed (exitcode: 17) local_rank: 4 (pid: 88) of binary: python3\n"


@pytest.mark.parametrize(
    ("found", "error_type", "action"),
    [
        ("Possible transient error!!", "hardware", "restart"),
        ("Possible persistent error!!", "hardware", "restart"),
        ("Correct result (but possible Application error) (toy)!", "numerical_instability", "stop"),
    ],
)
def test_megatron_says_without_the_iteration_what_a_result_came_from(
    watch: Watch, found: str, error_type: str, action: str
) -> None:
    verdict = f"{RERUN}Rank 12, node n7, device 4: {found}"
    done = watch(f"{TRAINED}{UNEXPECTED}{verdict}\n{LEFT}")
    assert (done.verdict.error_type, done.decision.action) == (error_type, action)
    assert done.verdict.root_line == verdict


def test_an_unexpected_result_is_no_failure_once_the_run_goes_on(watch: Watch) -> None:
    more = "".join(f"step: {n}  loss:  2.1  grad_norm:  0.3\n" for n in range(4, 9))
    assert watch(TRAINED + UNEXPECTED + more).verdict.state == "healthy"
    alone = watch(TRAINED + UNEXPECTED)
    assert (alone.verdict.error_type, alone.decision.action) == ("numerical_instability", "stop")


OVERFLOW = "[2026-03-02 12:00:01,120] [INFO] [toy.py:7:scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. "
LAST_SCALE = f"{OVERFLOW}Attempted loss scale: 1, reducing to 1\n"
SMALL = "2026-03-02 12:00:01 | INFO | toy | gradient overflow detected, setting loss scale to: 0.0004882\n"


@pytest.mark.parametrize(
    ("notice", "raised"),
    [
        (LAST_SCALE, "Exception: Current loss scale already at minimum - cannot decrease scale anymore. toy"),
        (SMALL, "FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably exploding."),
    ],
)
def test_the_exception_at_the_last_loss_scale_stands_above_the_notices_of_it(
    watch: Watch, notice: str, raised: str
) -> None:
    done = watch(f"{TRAINED}{notice}{notice}{frames(raised)}\n")
    assert (done.verdict.error_type, done.verdict.root_line) == ("numerical_instability", raised)
    alone = watch(f"{TRAINED}{notice}{LEFT}")
    assert (alone.verdict.root_line, alone.decision.action) == (notice.strip(), "stop")


@pytest.mark.parametrize(
    ("words", "error_type"),
    [("workspace Allocation of size ::20971520 failed!", "oom"), ("toy failed!", "exception")],
)
def test_a_workspace_that_a_gaudi_card_has_no_room_for_is_memory(
    watch: Watch, words: str, error_type: str
) -> None:
    raised = f"RuntimeError: [Rank:3] FATAL ERROR :: MODULE:PT_SYNHELPER {words}"
    assert watch(f"{TRAINED}{frames(raised)}\n").verdict.error_type == error_type


OF_A_TASK = "ray.exceptions.RayTaskError(ActorDiedError): ray::toy_main() (pid=77, ip=10.0.0.4)"
OF_THE_ACTOR = "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task."


def test_a_task_that_waited_for_a_dead_actor_says_so_where_nothing_else_does(watch: Watch) -> None:
    alone = watch(f"step: 1  loss: 2.5\nstep: 2  loss: 2.4\n{OF_A_TASK}\n")
    assert (alone.verdict.error_type, alone.verdict.root_line) == ("ray_actor_died", OF_A_TASK)
    both = watch(f'{OF_A_TASK}\n  File "/toy/train.py", line 9, in fit\n{OF_THE_ACTOR}\n')
    assert both.verdict.root_line == OF_THE_ACTOR
    other = OF_A_TASK.replace("ActorDiedError", "KeyError")
    assert watch(f"{other}\n").verdict.error_type == "exception"


def test_what_mindspore_refers_to_below_its_exception_is_the_root(watch: Watch) -> None:
    raised = frames("RuntimeError: Load toy failed. The details refer to 'Ascend Error Message'.")
    reason = "EI0006: [PID: 77] Getting socket times out. Reason: the remote server is not ready"
    told = watch(f"{raised}\n\n{'-' * 40}\n- Ascend Error Message:\n{'-' * 40}\n{reason}\n").verdict
    assert (told.error_type, told.root_line) == ("distributed_timeout", reason)
    alone = watch(f"{raised}\n").verdict
    assert (alone.error_type, alone.root_line_number) == ("exception", len(raised.splitlines()))
