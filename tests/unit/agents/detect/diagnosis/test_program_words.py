"""What debuggers, other runtimes and command-line tools say of an end; each beside kin of healthy runs."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch
from unit.agents.detect.diagnosis.test_cascades import frames

STEPS = "Epoch 3 step 40/900 loss 2.31\nEpoch 3 step 50/900 loss 2.30\n"
MORE = "Epoch 3 step 60/900 loss 2.29\nEpoch 3 step 70/900 loss 2.29\nEpoch 3 step 80/900 loss 2.28\n"
JVM = "# A fatal error has been detected by the Java Runtime Environment:\n#\n"
KALDI = "ERROR (toy-copy[5.5.0~1-32d9]:Open():toy-table.h:106) Failed to open toy.scp"
RPC = "_MultiThreadedRendezvous: <_MultiThreadedRendezvous of RPC that terminated with:"
UNPACKED = "gzip: stdin: invalid compressed data--format violated"


@pytest.mark.parametrize(
    ("last", "error_type"),
    [
        ('Thread 7 "python" received signal SIGSEGV, Segmentation fault.', "native_crash"),
        ('Thread 7 "python" received signal SIGABRT, Aborted.', "native_crash"),
        ("Abort trap: 6", "native_crash"),
        ("Bus error: 10", "native_crash"),
        ("Killed: 9", "host_oom"),
        ("dyld: Library not loaded: @rpath/libtoy.dylib", "import_error"),
        (f"{JVM}#  SIGSEGV (0xb) at pc=0x00007f37ec25e7a9, pid=7, tid=0x00007f379cbf", "native_crash"),
        ("# There is insufficient memory for the Java Runtime Environment to continue.", "host_oom"),
        (KALDI, "exception"),
        ("local/toy_prep.sh: error: no such folder toy", "exception"),
        ("Can't open toy.txt: No such file or directory at local/toy.pl line 12.", "exception"),
        (UNPACKED, "data"),
        ("ninja: build stopped: subcommand failed.", "import_error"),
        ("Exception has occurred: AttributeError", "exception"),
        ("Kernel died, restarting", "native_crash"),
        ("Your session crashed after using all available RAM.", "host_oom"),
        ("Error: SSH command Failed. See above for the output from the failure.", "exception"),
        ("E0302 11:52:40.1 77 toy.cc:7] run sub program error enforce toy == 1 failed, 0 != 1", "exception"),
        ("Error in value[[3L]](cond) : the toy is broken", "exception"),
        ("Error: EMFILE: too many open files, open '/toy/manager.log'", "config"),
        ("*** buffer overflow detected ***: terminated", "native_crash"),
        (frames("ValueError: Experiment toy-7 already exists!"), "config"),
        (frames(RPC), "exception"),
        (frames(f"grpc._channel.{RPC}"), "communication"),
        (frames("toy.Error: no wheels"), "exception"),
        ("Pass 3, Batch 40, Cost nan, {'toy': 1.0}", "numerical_instability"),
    ],
)
def test_the_words_of_a_program_tell_its_end(watch: Watch, last: str, error_type: str) -> None:
    done = watch(f"{STEPS}{last}\n")
    assert (done.verdict.error_type, done.decision.action in ("stop", "hold")) == (error_type, True)
    assert done.verdict.root_line.strip() == last.splitlines()[-1].strip()


@pytest.mark.parametrize(
    "line",
    [
        'Thread 7 "python" received signal SIGUSR1, User defined signal 1.',
        "PCIe Bus error: 10 corrected",
        "WARNING (toy-copy[5.5.0~1-32d9]:Open():toy-table.h:106) Failed to open toy.scp",
        "Use of uninitialized value $toy in print at toy.perl line 7.",
        "utils/toy_check.sh: WARNING: only one speaker",
        "tar: Removing leading `/' from member names",
        "ninja: no work to do.",
        "Experiment toy-7 already exists!",
        "Error in epoch 3 (of 9): 0.4",
    ],
)
def test_kin_of_such_words_are_no_failure(watch: Watch, line: str) -> None:
    assert watch(f"{STEPS}{line}\n").verdict.state != "failed"


def test_a_run_that_goes_on_behind_such_words_is_well(watch: Watch) -> None:
    assert watch(f"{STEPS}{UNPACKED}\n{MORE}").verdict.state != "failed"


def test_the_programs_own_error_beats_the_word_that_it_gave_up(watch: Watch) -> None:
    assert watch(f"{KALDI}\nkaldi::KaldiFatalError\n").verdict.root_line == KALDI
    assert watch(f"{UNPACKED}\ntar: Error is not recoverable: exiting now\n").verdict.root_line == UNPACKED


def test_the_compilers_error_beats_the_build_that_stopped(watch: Watch) -> None:
    missing = "toy.cu:7:10: fatal error: toy_runtime.h: No such file or directory"
    assert watch(f"{missing}\nninja: build stopped: subcommand failed.\n").verdict.root_line == missing


@pytest.mark.parametrize(
    ("words", "state"),
    [
        ("ValueError: the toy prompt has 88 tokens", "unknown"),
        ("jinja2.exceptions.TemplateError: no toy in the prompt", "unknown"),
        ("vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.", "failed"),
        ("RuntimeError: the toy engine is gone", "failed"),
    ],
)
def test_a_request_that_a_server_refused_is_no_failure_and_an_engine_that_died_is(
    watch: Watch, words: str, state: str
) -> None:
    server = "(APIServer pid=77) ERROR 03-02 11:52:40 [serving_chat.py:77] "
    assert watch(f"the toy server is up\n{server}{words}\n").verdict.state == state


@pytest.mark.parametrize(("above", "action"), [("the toy loads\n", "hold"), (STEPS, "restart")])
def test_a_client_that_was_closed_may_pass_only_behind_steps(watch: Watch, above: str, action: str) -> None:
    done = watch(above + frames("RuntimeError: Cannot send a request, as the client has been closed."))
    assert (done.verdict.error_type, done.decision.action) == ("communication", action)
