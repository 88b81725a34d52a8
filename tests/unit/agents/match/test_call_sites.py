"""What the frames of a traceback add to its last line, as a person sees it in a verdict."""

from __future__ import annotations

import pytest

from midwatch.agents.match.tracebacks import place_of
from unit.agents.conftest import Watch

HEAD = "Traceback (most recent call last):"


def trace(last: str, *frames: str) -> str:
    """A traceback whose frames are `file:function`, the innermost last."""
    lines = [HEAD, '  File "train.py", line 9, in <module>', "    main()"]
    for frame in frames:
        file, _, function = frame.rpartition(":")
        lines += [f'  File "{file}", line 7, in {function}', "    step()"]
    return "\n".join([*lines, last])


def test_the_innermost_frames_are_known_by_file_and_function() -> None:
    text = (trace("OSError: gone", "/env/a.py:outer", "/env/b.py:inner") + "\n").encode()
    start = text.rindex(b"OSError")
    assert place_of(text, start, len(text) - 1).frames[:2] == (("/env/b.py", "inner"), ("/env/a.py", "outer"))


@pytest.mark.parametrize(
    ("last", "frame", "error_type"),
    [
        ("KeyError: 'round'", "/toy/checkpointing.py:load_checkpoint", "checkpoint"),
        ("RuntimeError: no such part", "/env/torch/serialization.py:_load", "checkpoint"),
        ("ValueError: lr is no number", "/env/omegaconf/nodes.py:convert", "config"),
        ("FileNotFoundError: Directory /toy/train not found", "/env/datasets/load.py:load_from_disk", "data"),
        ("KeyError: 'round'", "/toy/loop.py:run", "exception"),
        (
            "ZeroDivisionError: float division by zero",
            "/env/apex/amp/scaler.py:unscale",
            "numerical_instability",
        ),
        ("ZeroDivisionError: float division by zero", "/toy/apex.py:unscale", "exception"),
        ("KeyError: 'round'", "/env/apex/amp/scaler.py:unscale", "exception"),
    ],
)
def test_whose_code_gave_up_tells_the_kind(watch: Watch, last: str, frame: str, error_type: str) -> None:
    said = watch(trace(last, frame)).verdict
    assert said.error_type == error_type


def test_an_object_store_that_is_late_may_be_asked_again(watch: Watch) -> None:
    done = watch(trace("asyncio.exceptions.TimeoutError", "/env/fsspec/asyn.py:_runner"))
    assert (done.verdict.error_type, done.decision.action) == ("storage", "restart")


def test_a_timeout_of_the_jobs_own_is_for_a_person(watch: Watch) -> None:
    done = watch(trace("TimeoutError: the group is late", "/toy/group.py:meet"))
    assert (done.verdict.error_type, done.decision.action) == ("communication", "hold")


@pytest.mark.parametrize(
    ("frames", "action"),
    [
        (
            ("/lib/http/client.py:begin", "/lib/http/client.py:_read_status", "/lib/socket.py:readinto"),
            "restart",
        ),
        (("/lib/http/client.py:connect", "/lib/socket.py:create_connection"), "hold"),
        (("/lib/http/client.py:begin", "/lib/ssl.py:do_handshake", "/lib/ssl.py:read"), "hold"),
    ],
)
def test_a_request_that_a_service_took_may_be_answered_the_next_time(
    watch: Watch, frames: tuple[str, ...], action: str
) -> None:
    done = watch(trace("TimeoutError: timed out", *frames))
    assert (done.verdict.error_type, done.decision.action) == ("communication", action)


@pytest.mark.parametrize(
    ("frames", "action"),
    [
        (
            ("/usr/lib/python3.11/urllib/request.py:urlretrieve", "/usr/lib/python3.11/socket.py:readinto"),
            "restart",
        ),
        (("/env/site-packages/requests/adapters.py:send",), "restart"),
        (
            ("/usr/lib/python3.11/urllib/request.py:urlopen", "/usr/lib/python3.11/ssl.py:do_handshake"),
            "hold",
        ),
        (("/usr/lib/python3.11/socket.py:recv_into",), "hold"),
        (("/env/torch/utils/data/dataloader.py:_next_data",), "hold"),
    ],
)
def test_a_download_that_was_reset_may_pass_and_a_link_of_the_job_s_own_may_not(
    watch: Watch, frames: tuple[str, ...], action: str
) -> None:
    done = watch(trace("ConnectionResetError: [Errno 104] Connection reset by peer", *frames))
    assert (done.verdict.error_type, done.decision.action) == ("communication", action)


def test_who_interrupts_a_run_that_waits_gave_up_on_a_hang(watch: Watch) -> None:
    done = watch(trace("KeyboardInterrupt", "/usr/lib/python3.11/multiprocessing/connection.py:_recv"))
    assert (done.verdict.error_type, done.verdict.mode, done.decision.action) == ("hang", "stall", "hold")


def test_who_interrupts_a_loop_that_fetches_its_next_batch_met_no_hang(watch: Watch) -> None:
    waits = ("/env/torch/utils/data/dataloader.py:_try_get_data", "/usr/lib/python3.11/queue.py:get")
    interrupted = trace("KeyboardInterrupt", *waits, "/usr/lib/python3.11/threading.py:wait")
    steps = "".join(f"step: {step}  loss:  2.{step}\n" for step in (1, 2, 3))
    for log in (interrupted, steps + interrupted):
        done = watch(log)
        assert (done.verdict.error_type, done.decision.action) == ("user_interrupt", "hold")


SPAWN = "/env/torch/multiprocessing/spawn.py"
SELECTS = (
    "/usr/lib/python3.11/multiprocessing/connection.py:wait",
    "/usr/lib/python3.11/selectors.py:select",
)


@pytest.mark.parametrize(
    ("caller", "error_type"),
    [
        (f"{SPAWN}:join", "user_interrupt"),
        ("/usr/lib/python3.11/multiprocessing/process.py:join", "user_interrupt"),
        ("/usr/lib/python3.11/multiprocessing/popen_fork.py:poll", "user_interrupt"),
        ("/env/torch/distributed/elastic/agent/server/api.py:_invoke_run", "user_interrupt"),
        ("/env/deepspeed/launcher/runner.py:main", "user_interrupt"),
        (f"{SPAWN}:_wrap", "hang"),
        ("/env/torch/distributed/elastic/multiprocessing/errors/__init__.py:wrapper", "hang"),
        ("/toy/group.py:meet", "hang"),
    ],
)
def test_a_launcher_waits_for_its_workers_in_any_run(watch: Watch, caller: str, error_type: str) -> None:
    """So its wait shows no hang. A worker itself waits in a collective or for a peer."""
    interrupted = trace("KeyboardInterrupt", caller, *SELECTS)
    steps = "".join(f"step: {step}  loss:  2.{step}\n" for step in (1, 2, 3))
    for log in (interrupted, steps + interrupted):
        assert watch(log).verdict.error_type == error_type


def test_a_tracker_that_could_not_finish_is_no_reason_to_start_a_script_again_that_came_to_its_end(
    watch: Watch,
) -> None:
    stale = "OSError: [Errno 116] Stale file handle"
    steps = "".join(f"step: {step}  loss:  2.{step}\n" for step in (1, 2, 3))
    tracker = "/env/wandb/sdk/wandb_run.py"
    for called, action in (("finish", "hold"), ("log", "restart")):
        log = steps + trace(stale, f"{tracker}:{called}", "/usr/lib/python3.11/logging/__init__.py:close")
        assert (watch(log).verdict.error_type, watch(log).decision.action) == ("storage", action)


def test_who_interrupts_a_download_met_no_process_that_waits(watch: Watch) -> None:
    reading = ("/usr/lib/python3.11/http/client.py:read", "/usr/lib/python3.11/ssl.py:recv_into")
    said = watch(trace("KeyboardInterrupt", "/usr/lib/python3.11/urllib/request.py:urlretrieve", *reading))
    assert (said.verdict.error_type, said.decision.action) == ("user_interrupt", "hold")
    unanswered = ("/usr/lib/python3.11/http/client.py:_read_status", "/usr/lib/python3.11/socket.py:readinto")
    assert watch(trace("KeyboardInterrupt", *unanswered)).verdict.error_type == "hang"


@pytest.mark.parametrize(
    "frames",
    [
        ("concurrent/futures/_base.py:result", "threading.py:wait"),
        ("multiprocessing/pool.py:get", "multiprocessing/pool.py:wait", "threading.py:wait"),
        ("subprocess.py:wait", "subprocess.py:_wait", "subprocess.py:_try_wait"),
    ],
)
def test_who_interrupts_a_parent_at_its_usual_wait_met_no_hang(watch: Watch, frames: tuple[str, ...]) -> None:
    said = watch(trace("KeyboardInterrupt", *(f"/usr/lib/python3.11/{each}" for each in frames)))
    assert (said.verdict.error_type, said.decision.action) == ("user_interrupt", "hold")


def test_a_pool_of_which_one_worker_was_at_work_did_not_hang(watch: Watch) -> None:
    library = "/usr/lib/python3.11/multiprocessing"
    pool = f"{library}/pool.py:worker"
    lock = f"{library}/synchronize.py:__enter__"
    idle = trace("KeyboardInterrupt", pool, f"{library}/queues.py:get", lock, lock)
    at_work = trace("KeyboardInterrupt", pool, "/toy/tables.py:look_up")
    for log, error_type in ((f"{idle}\n{at_work}\n{idle}", "user_interrupt"), (f"{idle}\n{idle}", "hang")):
        done = watch(log)
        assert (done.verdict.error_type, done.decision.action) == (error_type, "hold")


@pytest.mark.parametrize("library", ["wandb/sdk/lib", "comet_ml", "mlflow/tracking"])
def test_who_interrupts_a_tracker_that_waits_for_its_server_met_no_hang(watch: Watch, library: str) -> None:
    waits = (f"/env/{library}/mailbox.py:_wait", "/usr/lib/python3.11/threading.py:wait")
    said = watch(trace("KeyboardInterrupt", *waits))
    assert (said.verdict.error_type, said.decision.action) == ("user_interrupt", "hold")


def test_an_interrupt_ends_the_program_even_if_it_met_a_tracker(watch: Watch) -> None:
    tracker = "/env/wandb/sdk/wandb_init.py:init"
    interrupted = trace("KeyboardInterrupt", tracker, "/env/wandb/sdk/service.py:_wait_for_ports")
    interrupted = interrupted.replace('  File "train.py", line 9, in <module>\n    main()\n', "")
    done = watch(f"{interrupted}\n\n{trace('AssertionError: no logger', '/toy/train.py:main')}")
    assert (done.verdict.error_type, done.verdict.root_line) == ("user_interrupt", "KeyboardInterrupt")
    closing = "/usr/lib/python3.11/multiprocessing/util.py"
    at_exit = trace("KeyboardInterrupt", f"{closing}:_exit_function", f"{closing}:_run_finalizers")
    at_exit = at_exit.replace('  File "train.py", line 9, in <module>\n    main()\n', "")
    assert watch(f"loaded the toy\n{at_exit}").verdict.state != "failed"


def test_a_socket_that_went_with_its_process_says_only_that_the_process_ended(watch: Watch) -> None:
    met = "/usr/lib/python3.11/multiprocessing/connection.py:SocketClient"
    missing = "FileNotFoundError: [Errno 2] No such file or directory"
    interrupted = trace("KeyboardInterrupt", "/toy/model.py:forward")
    done = watch(trace(missing, met) + "\n" + interrupted)
    assert done.verdict.error_type == "user_interrupt"
    named = trace(missing + ": '/toy/part-7.bin'", "/toy/data.py:read")
    assert watch(named + "\n" + interrupted).verdict.root_line == missing + ": '/toy/part-7.bin'"


def test_a_connection_that_this_process_had_closed_says_only_that_it_ended(watch: Watch) -> None:
    connection = "/usr/lib/python3.11/multiprocessing/connection.py"
    closed = trace("OSError: handle is closed", f"{connection}:_check_closed")
    killed = "*** SIGTERM received at time=1780000000 on cpu 3 ***"
    done = watch(f"{killed}\n{closed}")
    assert (done.verdict.error_type, done.verdict.root_line) == ("cancelled", killed)
    elsewhere = watch(trace("OSError: handle is closed", "/toys/shelf.py:read"))
    assert elsewhere.verdict.root_line == "OSError: handle is closed"


def test_who_interrupts_a_run_that_works_just_stopped_it(watch: Watch) -> None:
    done = watch(trace("KeyboardInterrupt", "/toy/model.py:forward"))
    assert (done.verdict.error_type, done.decision.action) == ("user_interrupt", "hold")


def test_a_card_without_memory_for_a_barrier_is_broken_or_held(watch: Watch) -> None:
    last = "RuntimeError: CUDA error: out of memory"
    done = watch(trace(last, "/env/torch/distributed/distributed_c10d.py:barrier"))
    assert (done.verdict.error_type, done.decision.action) == ("hardware", "restart")
    done = watch(trace(last, "/toy/model.py:forward"))
    assert (done.verdict.error_type, done.decision.action) == ("oom", "stop")


@pytest.mark.parametrize("file", ["tqdm/utils.py:inner", "click/utils.py:echo", "logging/__init__.py:emit"])
def test_a_terminal_that_is_gone_is_no_broken_disk(watch: Watch, file: str) -> None:
    run = watch(trace("OSError: [Errno 5] Input/output error", f"/env/{file}"))
    assert (run.verdict.error_type, run.decision.action) == ("cancelled", "restart")
    assert "terminal" in run.verdict.remedy
    named = watch(trace("OSError: [Errno 5] Input/output error: '/toys/7.bin'", f"/env/{file}"))
    assert named.verdict.error_type == "storage"
    read = watch(trace("OSError: [Errno 5] Input/output error", "/toys/shelf.py:read"))
    assert read.verdict.error_type == "storage"


def test_a_hang_is_shown_by_the_last_sign_of_progress(watch: Watch) -> None:
    bar = " 60%|██████    | 1075/1790 [04:04<02:42, 4.40it/s]"
    log = f"{bar}\n" + trace("KeyboardInterrupt", "/usr/lib/python3.11/threading.py:wait")
    verdict = watch(log).verdict
    assert (verdict.error_type, verdict.root_line, verdict.root_line_number) == ("hang", bar, 1)


def test_a_child_cut_off_while_it_was_started_tells_of_its_parent(watch: Watch) -> None:
    child = trace("_pickle.UnpicklingError: pickle data was truncated", "/usr/multiprocessing/spawn.py:_main")
    parent = trace(
        "AttributeError: Can't pickle local object 'toy'", "/usr/multiprocessing/reduction.py:dump"
    )
    verdict = watch(f"{child}\n{parent}").verdict
    assert verdict.root_line == "AttributeError: Can't pickle local object 'toy'"


@pytest.mark.parametrize(
    ("folder", "frame", "transient"),
    [
        ("logs/version_3", "/usr/lib/python3.11/os.py:makedirs", True),
        ("out/2026-03-02/11-52-40", "/usr/lib/python3.11/pathlib.py:mkdir", True),
        ("out/tokenized", "/usr/lib/python3.11/os.py:makedirs", False),
        ("logs/version_3", "/toy/links.py:symlink", False),
    ],
)
def test_two_ranks_that_make_the_folder_of_this_start_may_race_once(
    watch: Watch, folder: str, frame: str, transient: bool
) -> None:
    """A folder that an earlier start left is found by each start again."""
    last = f"FileExistsError: [Errno 17] File exists: '{folder}'"
    log = "\n".join(f"[rank3]: {line}" for line in trace(last, frame).splitlines())
    done = watch(log)
    assert bool(done.verdict.transient) is transient, done.verdict
