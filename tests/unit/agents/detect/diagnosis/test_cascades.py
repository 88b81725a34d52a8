"""Which line is the cause, among the louder ones that follow from it."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

HANDLING = "During handling of the above exception, another {} occurred:".format("exception")

TIMEOUT = (
    "[rank{0}]:[E302 11:52:40.1 ProcessGroupNCCL.cpp:632] [Rank {0}] Watchdog caught collective operation"
    " timeout: WorkNCCL(SeqNum=48, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600041 milliseconds before"
    " timing out."
)
SUMMARY = (
    "E0302 11:52:45.3 9 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: 1)"
    " local_rank: 2 (pid: 88) of binary: python3"
)
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 3 has a total capacity of"
    " 79.11 GiB of which 1.02 GiB is free."
)


FRAME = '  File "toy.py", line 3, in save\n    write()\n'


def frames(last: str, *, source: str = "run()", prefix: str = "") -> str:
    lines = [
        "Traceback (most recent call last):",
        '  File "train.py", line 9, in <module>',
        "    main()",
        '  File "train.py", line 5, in main',
        f"    {source}",
        last,
    ]
    return "\n".join(prefix + line for line in lines)


def test_a_specific_cause_beats_waiting_ranks_and_the_launchers_summary(watch: Watch) -> None:
    log = "\n".join([*(TIMEOUT.format(rank) for rank in range(3)), frames(OOM, prefix="[rank3]: "), SUMMARY])
    done = watch(log)
    assert (done.verdict.error_type, done.decision.action) == ("oom", "stop")
    assert done.verdict.root_line == f"[rank3]: {OOM}"


@pytest.mark.capability("S000-08")
def test_what_was_asked_for_is_quoted_beside_what_there_is(watch: Watch) -> None:
    quantities = watch(OOM).verdict.quantities
    assert quantities == {"size": "2.50 GiB", "capacity": "79.11 GiB", "free": "1.02 GiB"}
    quantities = watch("Ran out of memory in memory space hbm. Used 82.1G of 80.0G hbm.").verdict.quantities
    assert quantities == {"allocated": "82.1G", "capacity": "80.0G"}


def test_any_exception_beats_ranks_that_only_waited(watch: Watch) -> None:
    log = "\n".join([TIMEOUT.format(0), frames("ValueError: the toy broke", prefix="[rank3]: "), SUMMARY])
    assert watch(log).verdict.root_line == "[rank3]: ValueError: the toy broke"


def test_the_first_exception_of_a_chain_is_the_cause(watch: Watch) -> None:
    log = "\n".join(
        [
            frames("ValueError: the batch is empty"),
            "",
            "The above exception was the direct cause of the following exception:",
            "",
            frames("RuntimeError: the epoch failed"),
        ]
    )
    assert watch(log).verdict.root_line == "ValueError: the batch is empty"


@pytest.mark.parametrize(
    ("waits", "root"),
    [("time.sleep(2)", "KeyboardInterrupt"), ("pool.join()", "ConnectionRefusedError: the toy is not up")],
)
def test_an_interrupt_while_a_handler_sleeps_follows_no_failure(watch: Watch, waits: str, root: str) -> None:
    """A loop that polls caught the refusal. One that cleans up behind a failure hung, and was interrupted."""
    refused = frames("ConnectionRefusedError: the toy is not up")
    assert (
        watch(f"{refused}\n\n{HANDLING}\n\n{frames('KeyboardInterrupt', source=waits)}\n").verdict.root_line
        == root
    )


def test_an_exception_that_was_only_a_probe_is_not(watch: Watch) -> None:
    log = "\n".join(
        [
            frames("KeyError: 'cached'"),
            "",
            HANDLING,
            "",
            frames("RuntimeError: the toy cannot be built"),
        ]
    )
    assert watch(log).verdict.root_line == "RuntimeError: the toy cannot be built"


def test_a_second_name_that_is_missing_too_was_no_probe(watch: Watch) -> None:
    first = frames("KeyError: 'iteration'", source="step = saved['iteration']")
    second = frames("KeyError: 'total'", source="step = saved['total']")
    assert watch("\n".join([first, "", HANDLING, "", second])).verdict.root_line == "KeyError: 'iteration'"


def test_an_assertion_without_a_text_is_named_by_its_source(watch: Watch) -> None:
    log = frames("AssertionError", source="assert batch.size == world", prefix="[rank1]: ")
    verdict = watch(log).verdict
    assert verdict.root_line.strip() == "[rank1]:     assert batch.size == world"
    assert verdict.root_line_number == 5


def test_what_a_logger_announces_is_proven_by_the_exception_itself(watch: Watch) -> None:
    log = f"Exception in the main loop: {OOM.partition(': ')[2]}\n" + frames(OOM)
    assert watch(log).verdict.root_line == OOM


def test_an_exception_whose_message_begins_below_announces_the_one_in_it(watch: Watch) -> None:
    quoted = "----\nIn cell 4 of the toy:\n----\nKeyError      Traceback (most recent call last)\n"
    log = frames("toys.NotebookError: ") + "\n" + quoted + "----> 5 wheels[7]\n\nKeyError: 'wheel 7'\n"
    assert watch(log).verdict.root_line == "KeyError: 'wheel 7'"
    assert watch(frames("toys.NotebookError: ") + "\nwheel 7 is lost\n").verdict.root_line_number == 6


def test_an_exception_that_left_its_script_says_as_much_as_the_exit_code_below_it(watch: Watch) -> None:
    log = frames("toys.PaintError: PaintError:") + "\n   blue is out of stock\n"
    verdict = watch(log + "2026/03/02 11:52:40 Process Exiting with Code:  1\n").verdict
    assert verdict.root_line == "toys.PaintError: PaintError:"


@pytest.mark.parametrize(
    "entry",
    ["  - wheels.left", "'wheels.left'", "[rank0]: * wheels.left", "1. wheels.left", "    wheel: left"],
)
def test_an_exception_that_lists_what_is_missing_announces_none(watch: Watch, entry: str) -> None:
    lists = frames("toys.MissingError: the toy lacks:") + f"\n{entry}\n"
    other = frames("AttributeError: 'Toy' object has no attribute 'name'")
    root = "toys.MissingError: the toy lacks:"
    assert watch(f"{lists}\n{HANDLING}\n\n{other}\n").verdict.root_line == root
    announced = watch(f"{lists.replace(entry, '')}\n{other}\n")
    assert announced.verdict.root_line == "AttributeError: 'Toy' object has no attribute 'name'"


def test_source_code_in_a_traceback_is_no_evidence(watch: Watch) -> None:
    source = "raise RuntimeError('CUDA out of memory. Tried to allocate 2.00 GiB')"
    done = watch(frames("toy.Interrupted", source=source))
    assert done.verdict.error_type != "oom"


def test_what_the_first_rank_met_is_the_root_of_a_save_that_several_could_not_do(watch: Watch) -> None:
    listed = (
        "torch.distributed.checkpoint.api.CheckpointException: CheckpointException ranks:dict_keys([0, 1])"
    )
    met = "RuntimeError: [enforce fail at inline_container.cc:668] . unexpected pos 7700 vs 7588"
    ranks = "".join(f"Traceback (most recent call last): (RANK {rank})\n{FRAME}{met}\n" for rank in (0, 1))
    done = watch(frames(f"{listed}\n{ranks}"))
    assert (done.verdict.root_line, done.verdict.error_type) == (met, "storage")
    (outer,) = [
        rival for rival in done.rivals if rival.rule == "checkpoint_parallel_errors" and rival.number == 6
    ]
    assert "outer entry" in outer.reason
    assert watch(frames(listed)).verdict.error_type == "checkpoint"


def test_ranks_that_print_through_one_another_part_an_exception_from_its_message(watch: Watch) -> None:
    parted = f"Traceback (most recent call last):\n{FRAME * 4}" + f"FileNotFoundError\n{FRAME}" * 4
    whole = "FileNotFoundError: [Errno 2] No such file or directory: '/data/toy.pt'"
    assert watch(f"{parted}{whole}\n").verdict.root_line == whole
    assert watch(f"{parted}KeyError: 'toy'\n").verdict.root_line == "FileNotFoundError"
    beside_carets = parted.replace(
        f"FileNotFoundError\n{FRAME}", f"~~~^^^FileNotFoundError\n: 'toy'\n{FRAME}"
    )
    assert watch(f"{beside_carets}{whole}\n").verdict.root_line == whole


def test_what_python_ignored_harms_nobody(watch: Watch) -> None:
    log = "Exception ignored in: <function Toy.__del__ at 0x7f>\n" + frames("AttributeError: no handle")
    assert watch(log).verdict.state != "failed"


@pytest.mark.parametrize(
    "line",
    [
        "[W302 11:53:01 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=3): got 0 bytes",
        "2026-03-02 11:00:00 WARNING toy.py:3 no fabric: libfabric.so: cannot open shared object file",
        "INFO:jax._src.xla_bridge:no backend 'tpu': libtpu.so: cannot open shared object file",
        "wandb: ERROR Error while calling W&B API: context deadline exceeded",
        "[rank: 0] Received SIGTERM: 15",
        "Corrupt JPEG data: 12 extraneous bytes before marker 0xd9",
    ],
)
def test_a_line_that_calls_itself_harmless_is_no_failure(watch: Watch, line: str) -> None:
    assert watch(f"{line}\nstep: 40  loss:  2.1  grad_norm:  0.3\n").verdict.state != "failed"


def test_a_step_cancelled_after_a_task_failed_is_clean_up(watch: Watch) -> None:
    log = "\n".join(
        [
            frames("ValueError: the toy broke", prefix="3: "),
            "srun: error: n4: task 3: Exited with exit code 1",
            "srun: Terminating StepId=7.0",
            "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-03-02T12:00:01 ***",
        ]
    )
    assert watch(log).verdict.root_line == "3: ValueError: the toy broke"


def test_a_step_cancelled_after_a_task_failed_without_a_word_was_not_cancelled_by_anybody(
    watch: Watch,
) -> None:
    log = "\n".join(
        [
            "srun: error: n4: task 3: Exited with exit code 1",
            "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-03-02T12:00:01 ***",
        ]
    )
    done = watch(log)
    assert (done.verdict.error_type, done.decision.action) == ("exception", "hold")


SRUN_ENDS_IT = (
    "srun: error: n1: task 1: Aborted\n"
    "srun: launch/slurm: _step_signal: Terminating StepId=7.0\n"
    "srun: error: n2: task 2: Terminated\n"
    "srun: Force Terminated StepId=7.0\n"
)
A_PERSON_ENDS_IT = (
    "srun: Job step aborted: Waiting up to 4 seconds for job step to finish.\n"
    "srun: error: n1: task 1: Exited with exit code 3\n"
    "srun: launch/slurm: _step_signal: Terminating StepId=7.0\n"
    "srun: error: n2: task 2: Terminated\n"
)


@pytest.mark.parametrize(
    ("of_srun", "step", "said"),
    [
        (SRUN_ENDS_IT, "7.0", "nccl_timeout"),
        (SRUN_ENDS_IT, "7.1", "cancelled"),  # a step that this srun did not end
        (A_PERSON_ENDS_IT, "7.0", "cancelled"),
    ],
)
def test_who_cancelled_a_step_is_known_where_its_tasks_have_files_of_their_own(
    watch: Watch, of_srun: str, step: str, said: str
) -> None:
    """`srun --output=rank_%t.log`: the node writes of the cancel there, srun of its own acts elsewhere; and
    the second that is printed with the cancel may begin before what led to it."""
    cancel = f"slurmstepd-n0: error: *** STEP {step} ON n0 CANCELLED AT 2026-03-02T11:52:40 ***"
    assert watch(of_srun, f"{TIMEOUT.format(1)}\n", f"{cancel}\n").verdict.error_type == said


def test_tasks_that_srun_killed_after_one_of_them_failed_did_not_run_out_of_memory(watch: Watch) -> None:
    log = "\n".join(
        [
            "srun: error: n4: task 3: Exited with exit code 1",
            "srun: launch/slurm: _step_signal: Terminating StepId=7.0",
            "srun: error: n4: tasks 0-2: Killed",
        ]
    )
    assert watch(log).verdict.error_type == "exception"


def test_a_task_that_was_killed_before_the_others_ended_may_have_run_out_of_memory(watch: Watch) -> None:
    log = "srun: error: n4: task 0: Killed\nsrun: error: n4: task 3: Exited with exit code 1"
    done = watch(log)
    assert (done.verdict.error_type, done.decision.action) == ("host_oom", "stop")


def test_a_job_that_somebody_cancelled_may_be_started_again(watch: Watch) -> None:
    log = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-03-02T12:00:01 ***"
    done = watch(log)
    assert (done.verdict.error_type, done.decision.action) == ("cancelled", "restart")


def test_a_time_limit_explains_the_signals_that_follow(watch: Watch) -> None:
    log = "\n".join(
        [
            "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-03-02T12:00:01 DUE TO TIME LIMIT ***",
            "W0302 12:00:02.8 77 torch/distributed/elastic/agent/server/api.py:719] Received 15 death signal,"
            " shutting down workers",
            "torch.distributed.elastic.multiprocessing.api.SignalException: Process 77 got signal: 15",
        ]
    )
    done = watch(log)
    assert (done.verdict.error_type, done.decision.action) == ("slurm_failure", "stop")


def test_a_timeout_of_a_run_that_never_made_a_step_is_not_tried_again_blindly(watch: Watch) -> None:
    done = watch(TIMEOUT.format(0))
    assert (done.verdict.error_type, done.verdict.transient, done.decision.action) == (
        "nccl_timeout",
        None,
        "hold",
    )


def test_a_timeout_of_a_run_that_made_steps_is_tried_again(watch: Watch) -> None:
    steps = [f"step: {n}  loss:  2.1  grad_norm:  0.3" for n in range(1, 40)]
    done = watch("\n".join([*steps, TIMEOUT.format(0)]))
    assert (done.verdict.error_type, done.decision.action) == ("nccl_timeout", "restart")


def test_a_diverged_run_is_not_healed_by_more_broken_steps(watch: Watch) -> None:
    log = "\n".join(f"step: {n}  loss:  nan  grad_norm:  nan" for n in range(1, 40))
    verdict = watch(log).verdict
    assert (verdict.error_type, verdict.root_line_number) == ("numerical_instability", 1)


def test_a_full_disk_is_behind_the_write_that_was_cut(watch: Watch) -> None:
    log = "\n".join(
        [
            "[rank0]: RuntimeError: [enforce fail at inline_container.cc:595] . unexpected pos 6016 vs 5904",
            "[rank1]: RuntimeError: [/gloo/transport/tcp/pair.cc:534] Connection closed by peer [n3]:201",
            SUMMARY,
            "OSError: [Errno 28] No space left on device",
        ]
    )
    done = watch(log)
    assert (done.verdict.error_type, done.decision.action) == ("storage", "stop")
    assert done.verdict.root_line_number == 4


def test_a_launcher_that_saw_a_task_fail_sends_the_reader_to_the_task(watch: Watch) -> None:
    done = watch("srun: error: n4: task 3: Exited with exit code 1")
    assert done.verdict.state == "failed"
    assert "its own lines stand above" in done.verdict.remedy


def test_the_root_line_can_be_found_in_the_file_as_it_was_printed(watch: Watch) -> None:
    line = "\x1b[36m(Worker pid=7)\x1b[0m ValueError: the toy broke"
    done = watch(f"\x1b[36m(Worker pid=7)\x1b[0m Traceback (most recent call last):\n{line}\n")
    assert done.verdict.root_line == line


def test_a_secret_in_the_root_line_stays_out(watch: Watch) -> None:
    done = watch("\x1b[31mValueError: password=hunter2hunter2 is refused\x1b[0m\n")
    assert done.verdict.state == "failed"
    assert "hunter2" not in done.verdict.root_line


def test_a_crash_behind_an_error_that_was_reported_is_its_echo(watch: Watch) -> None:
    log = "\n".join(
        [
            "[1,0]<stderr>:toy.UnknownError: ncclCommInitRank failed: unhandled cuda error",
            "[1,0]<stderr>:[n1:77] Signal: Segmentation fault (11)",
        ]
    )
    verdict = watch(log).verdict
    assert (verdict.error_type, verdict.root_line_number) == ("nccl", 1)


def test_an_error_of_the_system_whose_path_was_wrapped_hands_nothing_on(watch: Watch) -> None:
    failed = "FileExistsError: [Errno 17] File exists:"
    ended = "srun: error: n1: task 3: Exited with exit code 1"
    assert watch(f"{failed}\n'/scratch/toy/part-0'\n{ended}").verdict.root_line == failed


def test_a_crash_that_nobody_announced_is_the_cause(watch: Watch) -> None:
    log = "\n".join(
        [
            "[n1:77] Signal: Segmentation fault (11)",
            "[1,1]<stderr>:toy.UnknownError: ncclAllReduce failed: unhandled system error",
        ]
    )
    assert watch(log).verdict.error_type == "native_crash"


def test_what_stumbles_behind_an_interrupt_did_not_end_the_run(watch: Watch) -> None:
    log = frames("KeyboardInterrupt") + "\n" + frames("NameError: name 'toy' is not defined")
    verdict = watch(log).verdict
    assert (verdict.error_type, verdict.root_line) == ("user_interrupt", "KeyboardInterrupt")


def test_another_rank_that_failed_may_be_why_one_was_interrupted(watch: Watch) -> None:
    log = frames("KeyboardInterrupt", prefix="[rank1]: ") + "\n" + frames("OSError: toy", prefix="[rank0]: ")
    assert watch(log).verdict.root_line == "[rank0]: OSError: toy"


def test_a_launcher_that_says_how_it_ended_beats_one_that_stops_the_rest(watch: Watch) -> None:
    log = "\n".join(
        [
            "[2026-03-02 11:52:40,118] [INFO] [launch.py:315:sigkill_handler] Killing subprocess 77",
            "[2026-03-02 11:52:40,119] [ERROR] [launch.py:3:toy] ['toy'] exits with return code = 1",
        ]
    )
    assert watch(log).verdict.root_line_number == 2


@pytest.mark.parametrize(
    ("ending", "error_type"),
    [
        ("exits with return code = -11", "native_crash"),
        ("exits with return code = -9", "host_oom"),
        ("exits with return code = -7", "host_oom"),
        ("AlgorithmError: Exit Code: 139", "native_crash"),
        ("failed (exitcode: -11) local_rank: 2 (pid: 88) of binary: python3", "native_crash"),
        ("exited with code 143", "cancelled"),
    ],
)
def test_any_exit_by_a_signal_says_its_kind(watch: Watch, ending: str, error_type: str) -> None:
    verdict = watch(f"starting the toy\n[ERROR] [toy.py:3] the worker: {ending}\n").verdict
    assert verdict.error_type == error_type


def test_a_bare_name_gives_way_to_the_wrapper_that_says_whose_it_was(watch: Watch) -> None:
    wrapper = "ray.exceptions.RayTaskError(ToyError): ray::main() (pid=77, ip=10.0.0.1)"
    log = f"{wrapper}\n" + "\n".join(frames("ToyError").split("\n")[1:])
    assert watch(log).verdict.root_line == wrapper


def test_an_exception_that_hands_another_one_on_is_its_wrapper(watch: Watch) -> None:
    log = frames("toy.GetError: the object was made by remote function step which failed with:")
    log += "\n\nRemote function step failed with:\n\n" + frames("KeyError: 'toy'")
    assert watch(log).verdict.root_line == "KeyError: 'toy'"


def test_a_setting_named_in_a_message_is_no_level_of_the_line(watch: Watch) -> None:
    line = "n4: Test failure 'unhandled cuda error (run with NCCL_DEBUG=INFO for details)'"
    verdict = watch(line + "\n").verdict
    assert (verdict.error_type, verdict.root_line) == ("nccl", line)


SHUT_DOWN = (
    "2031-05-02 08:14:07.320011: W tensorflow/core/framework/op_kernel.cc:1700] OP_REQUIRES failed at"
    " mpi_ops.cc:410 : Unknown: Horovod has been shut down."
)


def test_a_lost_job_is_seen_where_the_library_only_warns_of_it(watch: Watch) -> None:
    steps = [f"step {step} loss: {3 - step / 100:.2f}" for step in range(1, 20)]
    done = watch("\n".join([*steps, SHUT_DOWN, SHUT_DOWN]))
    assert (done.verdict.state, done.verdict.error_type) == ("failed", "communication")
    assert done.verdict.root_line == SHUT_DOWN


def test_an_elastic_run_that_goes_on_after_it_is_well(watch: Watch) -> None:
    before = [f"step {step} loss: {3 - step / 100:.2f}" for step in range(1, 20)]
    after = [f"step {step} loss: {3 - step / 100:.2f}" for step in range(18, 60)]
    done = watch("\n".join([*before, SHUT_DOWN, "restoring the last commit", *after]))
    assert done.verdict.state != "failed"


@pytest.mark.parametrize("swapped", [False, True])
def test_what_the_files_are_called_decides_nothing_where_two_lines_have_one_time(
    watch: Watch, swapped: bool
) -> None:
    failed, killed = "srun: error: n4: task 3: Exited with exit code 1\n", "srun: error: n4: task 0: Killed\n"
    done = watch(*((killed, failed) if swapped else (failed, killed)))
    assert (done.verdict.error_type, done.decision.action) == ("host_oom", "stop")
