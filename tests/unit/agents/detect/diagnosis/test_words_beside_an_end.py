"""Words that look like a failure, or hide one: of a debugger, a queue, a terminal's copy, printed code."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

STEPS = "Epoch 3 step 40/900 loss 2.31\nEpoch 3 step 50/900 loss 2.30\n"
TRACE = 'Traceback (most recent call last):\n  File "train.py", line 5, in <module>\n    main()\n'
QUITS = (
    '  File "/usr/lib/python3.10/bdb.py", line 115, in dispatch_line\n    if self.quitting: raise BdbQuit\n'
)
EXECUTES = "001 (77.000.000) 03/02 11:00:00 Job executing on host: <10.8.0.4:9618?sock=toy>\n...\n"
EVICTED = "004 ({job}.000.000) 03/02 11:40:00 Job was evicted.\n\t(0) CPU times\n...\n"
REMOVED = "009 ({job}.000.000) 03/02 {time} Job was aborted.\n\tvia condor_rm (by user toy)\n...\n"


@pytest.mark.parametrize(
    "answer", ["*** NameError: name 'los' is not defined", "(Pdb) *** AttributeError: Toy"]
)
def test_what_a_debugger_answers_is_no_root(watch: Watch, answer: str) -> None:
    text = f"{STEPS}> /toy/train.py(40)step()\n-> loss = toy(x)\n{answer}\n(Pdb) 3\n"
    assert watch(text).verdict.state != "failed"
    assert watch(f"{text}{TRACE}{QUITS}bdb.BdbQuit\n").verdict.root_line == "bdb.BdbQuit"


def test_other_starred_words_stay_a_failure(watch: Watch) -> None:
    done = watch(f"{STEPS}*** Error in `python': free(): invalid pointer: 0x00007f01 ***\n")
    assert done.verdict.error_type == "native_crash"


@pytest.mark.parametrize("time", ["11:40:00", "12:55:10"])
def test_a_job_that_somebody_removed_was_not_preempted(watch: Watch, time: str) -> None:
    done = watch(EXECUTES + EVICTED.format(job=77) + REMOVED.format(job=77, time=time))
    assert (done.verdict.error_type, done.decision.action) == ("cancelled", "hold")
    assert done.verdict.root_line.startswith("009 (77.000.000)")


def test_an_evicted_job_that_nobody_removed_is_started_again(watch: Watch) -> None:
    evicted = EXECUTES + EVICTED.format(job=77)
    other = watch(evicted + REMOVED.format(job=78, time="11:40:00"))
    assert watch(evicted).decision.action == other.decision.action == "restart"


def test_a_job_that_was_held_before_its_removal_keeps_the_hold_as_its_root(watch: Watch) -> None:
    held = "012 (77.000.000) 03/02 11:30:00 Job was held.\n\tError from toy: no such toy\n...\n"
    done = watch(EXECUTES + held + REMOVED.format(job=77, time="12:00:00"))
    assert (done.verdict.error_type, done.decision.action) == ("config", "stop")


BAR = " 60%|######    | 1075/1790 [04:04<02:42, 4.40it/s]\n"


@pytest.mark.parametrize(
    "last",
    [
        "KeyboardInterruptcution_engine.run_backward(  # Calls into the toy engine",
        'KeyboardInterruptcution_engine.run_backward(b/toy/__init__.py", line 154, in backward',
        'KeyboardInterrupt/lib/toy.py", line 40, in step',
        "KeyboardInterrupt|######    | 1076/1790 [04:05<02:42, 4.40it/s]",
    ],
)
def test_an_interrupt_over_the_rest_of_an_older_line_is_one(watch: Watch, last: str) -> None:
    assert watch(f"{BAR}{last}\n").verdict.error_type == "user_interrupt"


@pytest.mark.parametrize(
    "last", ["KeyboardInterruptHandler is set up for 3/9 toys", "KeyboardInterrupt ends the toy politely"]
)
def test_a_name_that_begins_so_is_none(watch: Watch, last: str) -> None:
    assert watch(f"{BAR}{last}\n").verdict.state != "failed"


def test_code_that_a_data_set_prints_needs_no_memory(watch: Watch) -> None:
    code = "    if (!toys) {\n        ret = TOYERROR(ENOMEM);\n    }\n    FAIL(TOYERROR(ENOMEM));\n"
    assert watch(STEPS + code).verdict.state != "failed"
    for said in ("toyd: error: fork failed (ENOMEM)", "OSError: [Errno ENOMEM] the toy is full"):
        assert watch(f"{STEPS}{said}\n").verdict.error_type == "host_oom"


FULL = (
    f"{TRACE}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
    "capacity of 23.69 GiB of which 1.00 GiB is free.\n"
)


def requests(name: str, count: int) -> str:
    return "".join(
        f"Running {name} requests: {done // 3}%|#| {done}/300 [0{done // 60}:{done % 60:02}<05:10, 1.0it/s]\n"
        for done in range(10, 10 * count + 1, 10)
    )


@pytest.mark.parametrize("name", ["generate_until", "loglikelihood"])
def test_requests_that_run_on_show_that_another_start_works(watch: Watch, name: str) -> None:
    assert watch("toy 1\n" + FULL + requests(name, 20) + "|Tasks|Version|\n").verdict.state != "failed"
    assert watch("toy 1\n" + requests(name, 20) + FULL).verdict.error_type == "oom"


def piped(first: int, last: int) -> str:
    return "".join(
        f"step {step} | phase 2 | loss_G -0.{step % 90} | sep 0.4 | lr 1.00e-05 | 0.25s\n"
        for step in range(first, last, 100)
    )


BEGINS = "Device: cuda of toy\nGenerator params: 11.79M of toy\nResuming from ./toys/toy.pt of the toy\n"
CRASHED = "free(): invalid pointer\n/toy: line 3: 3904 Aborted         (core dumped) python train.py\n"


def test_a_crash_before_the_next_start_goes_on_is_behind_it(watch: Watch) -> None:
    done = watch(BEGINS + piped(1000, 4000) + CRASHED + BEGINS + piped(3000, 9000))
    assert (done.verdict.state, done.decision.action) == ("healthy", "none")
    assert watch(BEGINS + piped(1000, 4000) + CRASHED).verdict.error_type == "native_crash"


def test_steps_between_bars_get_over_no_broken_loss(watch: Watch) -> None:
    done = watch(piped(1000, 4000) + piped(4000, 9000).replace("loss_G -0.", "loss_G nan | was 0."))
    assert done.verdict.error_type == "numerical_instability"


@pytest.mark.parametrize(
    ("words", "error_type"),
    [
        ("RuntimeError: both arguments to matmul need to be at least 1D, but they are 0D and 2D", "torch"),
        ("RuntimeError: contracted dimensions need to match, but first has size 4 in dim 1", "torch"),
        ("RuntimeError: inconsistent tensor size, expected tensor [1] and src [768] to have", "torch"),
        ("RuntimeError: Parent directory ./runs/toy does not exist.", "checkpoint"),
        (
            "toy.MisconfigurationException: return a toy or None (where the step will be skipped).",
            "config",
        ),
    ],
)
def test_what_ends_each_start_alike_is_not_started_again(watch: Watch, words: str, error_type: str) -> None:
    done = watch(f"{STEPS}{TRACE}{words}\n")
    assert (done.verdict.error_type, done.decision.action) == (error_type, "stop")


def test_a_worker_of_paddle_that_was_asked_to_end_tells_of_no_checkpoint(watch: Watch) -> None:
    saving = '  File "/toy/paddle/framework/io.py", line 737, in save\n    _pickle_save(obj, f, protocol)\n'
    said = (
        "SystemError: (Fatal) DataLoader process (pid 911) exited is killed by signal: {signal}. (at toy)\n"
    )
    done = watch(f"{STEPS}{TRACE}{saving}{said.format(signal='Terminated')}")
    assert (done.verdict.error_type, done.decision.action) == ("cancelled", "hold")
    assert watch(f"{STEPS}{TRACE}{saving}{said.format(signal='Killed')}").verdict.error_type == "host_oom"
