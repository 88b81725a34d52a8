"""NCCL's own warning is the root in place of what its calls hand up, and shows no more than they do."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch
from unit.agents.detect.diagnosis.test_scheduler_word import STEPS

WARNING = "n4:77:78 [2] misc/toywrap.cc:187 NCCL WARN toyDeviceGetHandle() failed: Not Found\n"
HANDED_UP = "n4:77:78 [2] NCCL INFO graph/xml.cc:850 -> 2\nn4:77:78 [2] NCCL INFO init.cc:1012 -> 2\n"
PROXY = (
    "n4:77:78 [1] proxy.cc:1119 NCCL WARN [Proxy Service 9] Failed to execute operation Connect from rank 9, "
    "retcode 6\n"
)


@pytest.mark.parametrize("echo", [HANDED_UP, PROXY])
def test_the_warning_before_its_echoes_is_the_root(watch: Watch, echo: str) -> None:
    done = watch(WARNING + echo)
    assert (done.verdict.root_line, done.verdict.error_type) == (WARNING.strip(), "nccl")
    assert done.decision.action == "hold"


def test_what_calls_hand_up_without_a_warning_is_the_root_itself(watch: Watch) -> None:
    assert watch(HANDED_UP).verdict.root_line == HANDED_UP.splitlines()[1]
    assert watch(STEPS + WARNING).verdict.state == "healthy"


NO_ADDRESS = (
    "n4:77:78 [2] misc/socket.cc:41 NCCL WARN Call to bind failed : Cannot assign requested address\n"
)


def test_a_failed_call_that_names_its_reason_is_the_root_where_nccl_says_no_more(watch: Watch) -> None:
    assert watch(NO_ADDRESS + HANDED_UP).verdict.root_line == NO_ADDRESS.strip()
    assert watch(NO_ADDRESS + WARNING + HANDED_UP).verdict.root_line == WARNING.strip()
    assert watch(WARNING + NO_ADDRESS + HANDED_UP).verdict.root_line == WARNING.strip()


FELL = "n4:77:78 [2] transport/net_ib.cc:93 NCCL WARN NET/IB : Got async event : port error\n"
GAVE_UP = (
    "n5:88:90 [1] transport/net_ib.cc:1296 NCCL WARN NET/IB : Got completion from peer 10.8.0.4<41200> with "
    "error 12, opcode 0, len 0, vendor err 129\n"
)
WAITED = "[rank3]:[E302 11:52:40.1 toy.cpp:3] [Rank 3] Watchdog caught collective operation timeout: Work\n"


@pytest.mark.parametrize("end", [GAVE_UP, WAITED])
def test_a_port_that_fell_before_the_link_or_the_stall_is_the_root(watch: Watch, end: str) -> None:
    done = watch(STEPS + FELL + end)
    assert (done.verdict.root_line, done.verdict.error_type) == (FELL.strip(), "nccl")
    assert done.decision.action == "restart"
    assert watch(STEPS + end + FELL).verdict.root_line == end.strip()
    assert watch(STEPS + FELL).verdict.state == "healthy"


WEAK = "(pid=88) RuntimeError: NCCL error in: /toy/ProcessGroupNCCL.cpp:4, unhandled cuda error, NCCL v2\n"
NO_PEER = (
    "(pid=99) n4:99:100 [0] transport/p2p.cc:3 NCCL WARN toy IPC handle : 217 peer access is not supported\n"
)
CLOSED = (
    "(pid=99) n4:99:100 [0] misc/socket.cc:50 NCCL WARN socketProgress: Connection closed by remote peer n5\n"
)


def test_an_error_without_a_reason_takes_the_warning_that_another_process_printed_below(watch: Watch) -> None:
    assert watch(WEAK + NO_PEER).verdict.root_line == NO_PEER.strip()
    assert watch(WEAK + CLOSED).verdict.root_line != CLOSED.strip()
    own = "n4:99:100 [0] transport/p2p.cc:2 NCCL WARN Cuda failure 101 'invalid device ordinal'\n"
    assert watch(own + NO_PEER).verdict.root_line == own.strip()


NINJA = (
    "[rank0]: Traceback (most recent call last):\n"
    '[rank0]:   File "/toy/cpp_extension.py", line 9, in _run_ninja_build\n'
    "[rank0]:     subprocess.run(\n"
    "[rank0]: subprocess.CalledProcessError: Command '['ninja', '-v']' returned non-zero exit status 1.\n"
)
NO_LIBRARY = "/usr/bin/ld: cannot find -ltoyrand\n"
LINKER = f"FAILED: toy_adam.so \n{NO_LIBRARY}collect2: error: ld returned 1 exit status\n"


@pytest.mark.parametrize("last", [NINJA, "ninja: build stopped: subcommand failed.\n"])
def test_the_linker_says_what_the_build_lacks(watch: Watch, last: str) -> None:
    done = watch(LINKER + last)
    assert (done.verdict.root_line, done.verdict.error_type) == (NO_LIBRARY.strip(), "import_error")
    assert done.decision.action == "stop"


def test_a_library_that_a_probe_did_not_find_explains_no_other_end(watch: Watch) -> None:
    assert watch(NO_LIBRARY + "collect2: error: ld returned 1 exit status\n").verdict.state != "failed"
    other = "ValueError: the toy broke"
    assert watch(f"{NO_LIBRARY}Traceback (most recent call last):\n{other}\n").verdict.root_line == other


NO_COMPILER = "/bin/sh: 1: /opt/toy/bin/nvcc: not found\n"


def test_the_shell_says_which_compiler_the_build_lacks(watch: Watch) -> None:
    assert watch(NINJA.replace("1.", "127.") + NO_COMPILER).verdict.root_line == NO_COMPILER.strip()
    assert watch(NO_COMPILER + STEPS).verdict.state == "healthy"


INIT = (
    "/toy/torch/cuda/__init__.py:182: UserWarning: CUDA initialization: CUDA unknown error - this may be due "
    "to an incorrectly set up environment, e.g. changing env variable CUDA_VISIBLE_DEVICES\n"
)
NO_CARD = "Traceback (most recent call last):\nNotImplementedError: toy cannot find any torch accelerator\n"


def test_a_program_without_a_card_failed_by_what_cuda_warned_of(watch: Watch) -> None:
    done = watch(INIT + NO_CARD)
    assert (done.verdict.root_line, done.verdict.error_type) == (INIT.strip(), "hardware")
    assert done.decision.action == "hold"


def test_cuda_that_did_not_start_explains_no_other_exception(watch: Watch) -> None:
    assert (
        watch(INIT + "Traceback (most recent call last):\nKeyError: 'toy'\n").verdict.root_line
        == "KeyError: 'toy'"
    )
    assert watch(INIT + STEPS).verdict.state == "healthy"


AWAY = "toy_http.HTTPStatusError: Server error '503 Service Unavailable' for url 'https://toy.example.org'\n"
NOT_FOUND = (
    "huggingface_hub.errors.LocalEntryNotFoundError: An error happened while trying to locate the file\n"
)


def test_a_hub_that_answers_5xx_is_away_for_a_while(watch: Watch) -> None:
    done = watch(f"[rank0]: {AWAY}[rank0]: {NOT_FOUND}")
    assert (done.verdict.root_line, done.decision.action) == (f"[rank0]: {AWAY}".strip(), "restart")
    assert watch(f"[rank0]: {NOT_FOUND}").decision.action == "hold"
    assert watch(f"[rank1]: {AWAY}[rank0]: {NOT_FOUND}").verdict.root_line == f"[rank0]: {NOT_FOUND}".strip()


WORKER_FAILED = (
    "E0302 11:52:41.100000 77 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) "
    "local_rank: 1 (pid: 4041) of binary: /toys/bin/python\n"
)
LIST_OF_FAILURES = (
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
    "============================================================\ntoys.train FAILED\n"
    "Root Cause (first observed failure):\n[0]:\n  rank      : 1 (local_rank: 1)\n"
    "  exitcode  : 1 (pid: 4041)\n  error_file: /tmp/toys/attempt_0/1/error.json\n"
    "  traceback : Traceback (most recent call last):\n"
    '    File "/toys/feed.py", line 9, in read\n      part = client.get(url)\n'
)
CLIENT_CLOSED = "RuntimeError: Cannot send a request, as the client has been closed.\n"


def test_the_error_that_torchrun_lists_of_the_process_that_failed_is_the_root(watch: Watch) -> None:
    done = watch(STEPS + WORKER_FAILED + LIST_OF_FAILURES + "  " + CLIENT_CLOSED)
    assert (done.verdict.root_line.strip(), done.verdict.error_type) == (
        CLIENT_CLOSED.strip(),
        "communication",
    )
    other = watch(STEPS + WORKER_FAILED + "[rank2]: " + CLIENT_CLOSED)
    assert other.verdict.root_line == WORKER_FAILED.strip()


TERMINATED = "*** SIGTERM received at time=1772452360 on cpu 7 ***\n"
UP = (
    "INFO 03-02 11:59:40 [toys.py:7] init engine (profile, create kv cache, warmup model) took 7.70 seconds\n"
)


def waits(seconds: int) -> str:
    return (
        "INFO 03-02 11:52:40 [toys.py:7] Waiting for creating a placement group of specs for "
        f"{seconds} seconds. specs=[{{'GPU': 1.0}}, {{'GPU': 1.0}}].\n"
    )


def test_an_engine_that_never_got_its_gpus_is_held_whoever_ended_it(watch: Watch) -> None:
    done = watch(waits(10) + waits(70) + waits(150) + TERMINATED)
    assert (done.verdict.error_type, done.decision.action) == ("config", "hold")
    assert done.verdict.root_line == waits(70).strip()


@pytest.mark.parametrize("log", [waits(10) + TERMINATED, waits(70) + UP + TERMINATED])
def test_an_engine_that_came_up_or_hardly_waited_was_ended(watch: Watch, log: str) -> None:
    assert watch(log).verdict.error_type == "cancelled"
