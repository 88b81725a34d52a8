"""A failure behind which a log goes on for long ended nothing; a stack, a dump or a summary is no work."""

from __future__ import annotations

import pytest

from midwatch.agents.replay.went_on.aftermath import ENOUGH
from unit.agents.conftest import Watch

RAISED = (
    "Traceback (most recent call last):\n"
    '  File "/toy/optional.py", line 9, in probe\n'
    "    return getattr(module, name)\n"
    "AttributeError: module 'toy' has no attribute 'fast'\n"
)


def test_a_log_that_goes_on_had_not_failed(watch: Watch) -> None:
    done = watch(RAISED + "".join(f"module.layer.{number}.weight is built\n" for number in range(ENOUGH)))
    assert done.verdict.state != "failed"
    assert done.decision.action == "none"
    assert any("goes on for many lines behind log:4" in each for each in done.assumed)


def test_a_few_lines_more_are_no_work(watch: Watch) -> None:
    done = watch(RAISED + "".join(f"closing file {number}\n" for number in range(ENOUGH - 2)))
    assert done.verdict.state == "failed"


@pytest.mark.parametrize(
    "line",
    [
        "frame #7: c10::toy() + 0x1 (0x7f in /lib/libtoy.so)",
        "#7  0x00007fe93f6c7cab in toy ()",
        "    @     0x7f85f88df0b3  __libc_start_main",
        "wandb: train/loss 2.1",
        "7f2b3c000000-7f2b3c021000 rw-p 00000000 00:00 0",
        "2026-03-02 11:52:40.1: I tensorflow/core/common_runtime/bfc_allocator.cc:632] Chunk at 0x70 of 64",
        "MaxInUse:                240118272",
        "W0302 11:52:40.118290 77 util.py:144] Unresolved object in checkpoint: (root).toy.layer-7._nodes",
        "2026-03-02 07:28:07,592 VINFO scripts.py:1099 -- Attempted to stop `ray::IDLE`, but it was dead.",
        "profiling:/usr/src/toys/Modules/toy.gcda:Cannot open",
        "[ERROR] TBE Subprocess[task_toy] raise error[], main process disappeared!",
    ],
)
def test_a_stack_a_dump_and_a_summary_are_no_work(watch: Watch, line: str) -> None:
    assert watch(RAISED + f"{line}\n" * (3 * ENOUGH)).verdict.state == "failed"


WORKERS = "".join(f"\x1b[36m(toy_task pid={70 + n % 3})\x1b[0m batch {n} of 900\n" for n in range(2 * ENOUGH))


def test_workers_that_ray_lets_work_on_show_nothing_of_their_driver(watch: Watch) -> None:
    assert watch(RAISED + WORKERS).verdict.state == "failed"
    stray = "/toy/run.sh: line 9: of: command not found\n"
    assert watch(stray + WORKERS).verdict.state != "failed"
    of_a_worker = "".join(f"(toy_task pid=70) {line}\n" for line in RAISED.splitlines())
    assert watch(of_a_worker + WORKERS).verdict.state != "failed"
    driver = "".join(f"result {n} is read\n" for n in range(ENOUGH))
    assert watch(RAISED + WORKERS + driver).verdict.state != "failed"


def test_a_later_failure_counts_though_much_stands_between(watch: Watch) -> None:
    between = "".join(f"module.layer.{number}.weight is built\n" for number in range(ENOUGH))
    done = watch(RAISED + between + RAISED.replace("fast", "slow"))
    assert done.verdict.state == "failed"


def test_the_last_of_many_failures_of_one_rule_is_known(watch: Watch) -> None:
    """Of equal failures only the first ones are kept in full. The job got over those, not over the last."""
    steps = "".join(
        f" iteration {n:8d}/ 900 | consumed samples: 64 | elapsed time per iteration (ms): 95.0 | "
        "lm loss: 2.1 |\n"
        for n in range(1, 6)
    )
    done = watch(RAISED * 5 + steps + RAISED.replace("fast", "last"))
    assert done.verdict.root_line == "AttributeError: module 'toy' has no attribute 'last'"


def _bar(draws: int, label: str = "") -> str:
    return "".join(
        f"\r{label} {n // 9}%|##   | {n}/900 [00:{n % 60:02d}<09:00,  1.00it/s]" for n in range(draws)
    )


def test_a_bar_that_is_drawn_on_in_one_line_had_not_failed(watch: Watch) -> None:
    assert watch(RAISED + _bar(ENOUGH + 1) + "\n").verdict.state != "failed"
    assert watch(RAISED + _bar(ENOUGH // 2) + "\n").verdict.state == "failed"


KILLED = "slurmstepd: error: *** JOB 7 ON toy-1 CANCELLED AT 2026-03-02T11:52:40 ***"


def test_what_stands_in_front_of_the_last_words_is_not_behind_them(watch: Watch) -> None:
    """The last line of a killed job has no line feed, and a bar may fill more than a block of the file."""
    assert watch("loads the toy\n" + _bar(2 * ENOUGH) + KILLED).verdict.error_type == "cancelled"
    assert watch("loads the toy\n" + _bar(10_000) + "\n" + RAISED.strip()).verdict.state == "failed"
    assert watch(RAISED + "loads the toy\n" + _bar(10_000)).verdict.state != "failed"


@pytest.mark.parametrize(
    ("line", "state"), [("0.4{:03d}", "unknown"), ("正解率: 0.{:03d}", "unknown"), ("7{:03d}", "failed")]
)
def test_losses_and_words_of_any_language_are_work_and_whole_numbers_are_none(
    watch: Watch, line: str, state: str
) -> None:
    rest = "".join(line.format(number) + "\n" for number in range(ENOUGH + 1))
    assert watch(RAISED + rest).verdict.state == state


SAID = "toy 7: index 3 is out of bounds for dimension 0 with size 2\n"
ROUND = "".join(f"toy.layer.{number} is built\n" for number in range(8))


def test_what_a_program_said_again_and_again_and_worked_on_ended_nothing(watch: Watch) -> None:
    assert watch((SAID + ROUND) * 8).verdict.state == "unknown"
    assert watch((SAID + ROUND) * 7 + SAID).verdict.state == "failed"
    assert watch((SAID + ROUND) * 3).verdict.state == "failed"


def test_a_worker_that_said_it_again_and_again_must_itself_have_worked_on(watch: Watch) -> None:
    own = "".join(f"(Toys pid=41) {line}\n" for line in (SAID + ROUND).splitlines())
    other = f"(Toys pid=41) {SAID}" + "".join(f"(Toys pid=42) {line}\n" for line in ROUND.splitlines())
    assert watch(own * 8).verdict.state == "unknown"
    assert watch(own * 7 + f"(Toys pid=41) {SAID}").verdict.state == "failed"
    assert watch(other * 8).verdict.state == "failed"


def test_what_ranks_or_tracebacks_say_again_and_again_counts(watch: Watch) -> None:
    assert watch((f"[rank3]: {SAID}" + ROUND) * 8).verdict.state == "failed"
    assert watch((RAISED + ROUND) * 8).verdict.state == "failed"


STEP = "7: iteration {:8d}/ 90 | consumed samples: 4 | elapsed time per iteration (ms): 9.0 | lm loss: 2 |\n"


def steps(first: int, last: int) -> str:
    return "".join(STEP.format(step) for step in range(first, last + 1))


CARD = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
WORDS = [f"{first}{second}" for first in "abcdefghij" for second in "uvwxyz"]
PACKAGES = "".join(f"toy-{word}==1.2\n" for word in WORDS)
DELETED = "".join(f"removed '/scratch/toy/{word}.bin'\n" for word in WORDS)
VARIABLES = "".join(f"TOY_{word.upper()}=on\n" for word in WORDS)
COPIED = "".join(f"saved/{word}.pt\n" for word in WORDS)
WAITS = "".join(f"rank {n % 8} is waiting for rank 3, {n} s\n" for n in range(3 * ENOUGH))
MONITOR = "".join(f"toymon: card {n % 8} busy {n % 3} %, {n} W\n" for n in range(3 * ENOUGH))
CHECKS = "".join(f'INFO:  10.8.0.4:41200 - "GET /toys/{word} HTTP/1.1" 200 OK\n' for word in WORDS)
CARDS = "".join(f"2026/03/02 11:52:40.118, Toy {word}, 35 %, 10240 MiB, 77.5 W\n" for word in WORDS)
USAGE = "".join(f"toymon {word}: CPU usage: 35.5%, MEM: 40%\n" for word in WORDS)
BEATS = "".join(f"toymon: heartbeat of {word}\n" for word in WORDS)
CALLED_OFF = "".join(f"WARNING - Successfully canceled input ('toy-{word}',)\n" for word in WORDS)
WORK = "".join(f"the {word} of the toy is painted\n" for word in WORDS)

ENDS = [
    "slurmstepd: error: *** JOB 7 ON toy-1 CANCELLED AT 2026-03-02T11:52:40 DUE TO TIME LIMIT ***",
    "slurmstepd: error: *** JOB 7 ON toy-1 CANCELLED AT 2026-03-02T11:52:40 DUE TO PREEMPTION ***",
    "srun: error: Node failure on toy-1",
    "srun: error: toy-1: task 3: Out Of Memory",
    "srun: error: toy-1: task 3: Exited with exit code 1",
    "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of its tasks have been OOM Killed.",
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
    "run.sh: line 9:  4188 Segmentation fault      (core dumped) python toy.py",
    "mpirun noticed that process rank 3 with PID 4188 on node toy-1 exited on signal 11 (Aborted).",
    "toy-1 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=4188, GPU has fallen off the bus.",
]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("before", ["the toy is wound up\n", steps(1, 9)])
def test_only_steps_undo_the_word_that_the_job_has_ended(watch: Watch, before: str, end: str) -> None:
    assert watch(f"{before}{end}\n{DELETED}{WORK}{MONITOR}").verdict.state == "failed"
    assert watch(f"{before}{end}\n{WORK}{steps(10, 19)}").verdict.state == "healthy"


@pytest.mark.parametrize(
    "rest", [PACKAGES, DELETED, VARIABLES, COPIED, WAITS, CHECKS, CARDS, USAGE, BEATS, CALLED_OFF]
)
@pytest.mark.parametrize("before", ["the toy is wound up\n", steps(1, 9)])
def test_listings_waiting_and_monitors_are_no_work(watch: Watch, before: str, rest: str) -> None:
    assert watch(before + RAISED + rest).verdict.state == "failed"
    assert watch(before + RAISED + WORK).verdict.state != "failed"


def test_a_job_that_had_trained_or_lacks_memory_does_not_go_on_with_one_form(watch: Watch) -> None:
    assert watch(steps(1, 9) + RAISED + MONITOR).verdict.state == "failed"
    assert watch(RAISED + MONITOR).verdict.state != "failed"
    assert watch(CARD + MONITOR).verdict.state == "failed"
    assert watch(CARD + WORK).verdict.state != "failed"


def test_the_next_training_shows_that_the_job_went_on_though_its_steps_begin_anew(watch: Watch) -> None:
    assert watch(steps(1, 90) + RAISED + steps(1, ENOUGH)).verdict.state == "healthy"
    late = "".join(f"{rank}: {STEP.format(90)}" for rank in range(2 * ENOUGH))
    assert watch(steps(1, 90) + RAISED + late).verdict.state == "failed"


def test_a_bar_behind_a_failure_of_a_job_that_had_trained_is_work(watch: Watch) -> None:
    assert watch(steps(1, 9) + RAISED + _bar(ENOUGH + 1) + "\n").verdict.state != "failed"


UPLOAD = _bar(2 * ENOUGH, "Uploading toys:") + "\n"


@pytest.mark.parametrize("raised", [RAISED, CARD])
def test_a_bar_of_another_program_is_one_form(watch: Watch, raised: str) -> None:
    assert watch(steps(1, 9) + raised + UPLOAD).verdict.state == "failed"
    assert watch(steps(1, 9) + raised + UPLOAD + WORK).verdict.state != "failed"
    assert watch(CARD + UPLOAD).verdict.state == "failed"
    training = _bar(2 * ENOUGH, "Epoch 3:") + "\n"
    assert watch(steps(1, 9) + raised + training).verdict.state != "failed"


def test_a_bar_that_the_job_drew_before_is_its_own(watch: Watch) -> None:
    assert (
        watch(steps(1, 9) + _bar(9, "[rank0]: Painting toys:") + "\n" + RAISED + UPLOAD).verdict.state
        == "failed"
    )
    painted = steps(1, 9) + _bar(9, "Painting toys:") + "\n" + RAISED
    assert watch(painted + _bar(2 * ENOUGH, "Painting toys:") + "\n").verdict.state != "failed"


ENDED = (
    "Traceback (most recent call last):\n"
    '  File "/toy/train.py", line 90, in <module>\n'
    "    main()\n"
    '  File "/toy/train.py", line 70, in main\n'
    "    wind(toy['key'])\n"
    "KeyError: 'key'\n"
)
SAID_BY_RANK = "".join(f"[rank0]: {line}\n" for line in ENDED.splitlines())
AS_MODULE = ENDED.replace(
    '"/toy/train.py", line 90, in <module>', '"<frozen runpy>", line 198, in _run_module_as_main'
)
WATCHED = (
    "[rank3]:[E302 11:52:41.7 ProcessGroupNCCL.cpp:1895] [PG ID 0 PG GUID 0(default_pg) Rank 3] Process "
    "group watchdog thread terminated with exception: [Rank 3] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=48, OpType=ALLREDUCE) ran for 30041 milliseconds before timing out.\n"
)


@pytest.mark.parametrize("end", [ENDED, SAID_BY_RANK, AS_MODULE, WATCHED])
def test_behind_steps_only_steps_undo_the_end_of_a_process(watch: Watch, end: str) -> None:
    assert watch(steps(1, 90) + end + WORK + _bar(2 * ENOUGH) + "\n").verdict.state == "failed"
    assert watch(steps(1, 90) + end + WORK + steps(1, ENOUGH)).verdict.state == "healthy"


def test_the_jobs_own_training_bar_behind_the_end_of_a_process_is_the_next_start(watch: Watch) -> None:
    begun = steps(1, 90) + _bar(9) + "\n" + ENDED
    assert watch(begun + _bar(2 * ENOUGH) + "\n").verdict.state == "healthy"
    assert watch(begun + _bar(2 * ENOUGH).replace("/900 ", "/700 ") + "\n").verdict.state == "failed"
    assert watch(begun + _bar(2 * ENOUGH, "Painting:") + "\n").verdict.state == "failed"


def test_an_exception_that_stays_within_a_function_may_be_caught(watch: Watch) -> None:
    caught = ENDED.replace("in <module>", "in step")
    assert watch(steps(1, 90) + caught + WORK).verdict.state == "healthy"
    assert watch(ENDED + WORK).verdict.state != "failed"
    toys = "".join(f"toy {number} is painted\n" for number in range(2 * ENOUGH))
    assert watch(caught + toys).verdict.state != "failed"
    assert watch(ENDED + toys).verdict.state == "failed"  # one form, and nobody caught it


CANCELLED = "slurmstepd: error: *** JOB 77 ON n4 CANCELLED AT 2026-03-02T10:00:00 ***\n"
PACK = "abcdefghijklmnopqrstuvwxyz"


@pytest.mark.parametrize(("minutes", "state"), [(9, "unknown"), (1, "failed")])
def test_what_is_written_minutes_behind_a_scheduler_s_cancel_is_of_another_job(
    watch: Watch, minutes: int, state: str
) -> None:
    rest = "".join(
        f"2026-03-02 10:0{minutes}:00,000 toy {one}{two} is packed\n" for one in PACK for two in PACK
    )
    assert watch(CANCELLED + rest).verdict.state == state


def test_a_date_right_behind_a_cancel_tells_that_another_job_has_begun(watch: Watch) -> None:
    rest = "".join(f"E0302 10:20:00.000000 77 toy {one}{two} is packed\n" for one in PACK for two in PACK)
    assert watch(CANCELLED + "Mon Mar  2 10:09:00 2026\n" + rest).verdict.state == "unknown"
    assert watch(CANCELLED + "Mon Mar  2 10:01:00 2026\n" + rest).verdict.state == "failed"


def test_a_few_lines_behind_a_cancel_are_not_another_job_however_late(watch: Watch) -> None:
    assert watch(CANCELLED + "2026-03-02 10:09:00,000 the epilog counts its toys\n").verdict.state == "failed"


STRAY = "/var/spool/slurmd/job77/slurm_script: line 9: --toys=3: command not found\n"
UNCLOSED = "train.sh: line 9: syntax error: unexpected end of file\n"
STEPS = "".join(f"step: {step}  loss: 2.10  grad_norm: 1.02\n" for step in range(1, 9))
WORKED = "".join(f"toy {letter} is painted\n" for letter in PACK)


@pytest.mark.parametrize(
    ("text", "state"),
    [
        (WORKED + STRAY, "unknown"),
        (WORKED + STRAY.replace("--toys=3", "d"), "unknown"),
        (STRAY.replace("--toys=3", "d"), "failed"),
        (STRAY, "failed"),
        (WORKED + STRAY.replace("--toys=3", "toybuilder"), "failed"),
        (WORKED + STRAY + RAISED, "failed"),
        (WORKED + UNCLOSED, "failed"),
        (STEPS + WORKED + UNCLOSED, "healthy"),
        (STEPS + WORKED + STRAY.replace("--toys=3", "toybuilder"), "failed"),
        (WORKED + "-bash: save-toys: command not found\n", "unknown"),
        (WORKED + "bash: save-toys: command not found\n", "failed"),
        (WORKED + RAISED + "-bash: save-toys: command not found\n", "failed"),
    ],
)
def test_an_option_that_a_shell_took_for_a_command_ended_no_work_above(
    watch: Watch, text: str, state: str
) -> None:
    assert watch(text).verdict.state == state


PRINTED = (
    "2026-03-02 10:00:09,118 - toys - ERROR - toy 7 is refused\n"
    "Traceback (most recent call last):\n"
    '  File "/toy/paint.py", line 90, in paint_one\n'
    "    wind(toy['key'])\n"
    "KeyError: 'key'\n"
)
FINISHED = "2026-03-02 10:09:00,118 - toys - INFO - Experiment completed successfully\n"


@pytest.mark.parametrize(
    ("text", "state"),
    [
        (PRINTED + FINISHED, "unknown"),
        (PRINTED, "failed"),
        (FINISHED + PRINTED, "failed"),
        (PRINTED.replace("in paint_one", "in <module>") + FINISHED, "failed"),
        (PRINTED.replace("in paint_one", "in _bootstrap_inner") + FINISHED, "failed"),
        (PRINTED.replace("Traceback (most recent call last):\n", "") + FINISHED, "failed"),
        ("<urlopen error [Errno 111] Connection refused>\n" + FINISHED, "unknown"),
        ("<urlopen error [Errno 111] Connection refused>\n", "failed"),
        ("urllib.error.URLError: <urlopen error [Errno 111] Connection refused>\n" + FINISHED, "failed"),
    ],
)
def test_what_a_handler_printed_ended_no_program_that_tells_of_its_success(
    watch: Watch, text: str, state: str
) -> None:
    assert watch(WORKED + text).verdict.state == state


TRIAL = "  trial failed: OutOfMemoryError: CUDA out of memory. Tried to allocate 7.00 GiB.\n"
SWEPT = "sweep finished, 7 trials\n"


@pytest.mark.parametrize(
    ("text", "state"),
    [
        (TRIAL * 2 + SWEPT, "unknown"),
        (TRIAL * 2, "failed"),
        (SWEPT + TRIAL, "failed"),
        (TRIAL.replace("trial", "training") + SWEPT, "failed"),
        (TRIAL.replace("OutOfMemoryError: ", "") + SWEPT, "failed"),
    ],
)
def test_a_trial_that_a_sweep_reports_as_failed_ends_no_sweep_that_was_finished(
    watch: Watch, text: str, state: str
) -> None:
    assert watch("toy 1\n" + text).verdict.state == state


def test_no_rank_gets_over_the_word_of_a_watchdog_however_many_print_it(watch: Watch) -> None:
    ended = "watchdog thread terminated with exception: CUDA error: unspecified launch failure"
    words = f"  what():  [Rank 7] Process group {ended}\nSearch for `cudaErrorLaunchFailure' in docs\n"
    one = words + "".join(f"toy {letter} of this rank is at rest\n" for letter in PACK[:8])
    assert watch(one * 8).verdict.error_type == "torch"
    assert (
        watch("".join(f"[+   77.125] {line}\n" for line in one.splitlines() * 8)).verdict.error_type
        == "torch"
    )


def test_work_that_tells_how_busy_its_cards_are_is_work(watch: Watch) -> None:
    turns = "".join(f"toy {word}: 3 samples painted, GPU usage: 35%\n" for word in WORDS)
    assert watch(RAISED + turns).verdict.state != "failed"
    assert watch(RAISED + turns.replace(" samples", " cards")).verdict.state == "failed"


@pytest.mark.parametrize(("lines", "failed"), [(16, False), (12, True)])
def test_a_script_goes_on_behind_a_file_that_is_missing(watch: Watch, lines: int, *, failed: bool) -> None:
    lacks = "run.sh: line 7: /opt/toys/env.sh: No such file or directory\n"
    assert (
        watch(lacks + "".join(WORK.splitlines(keepends=True)[:lines])).verdict.state == "failed"
    ) is failed


def test_frames_of_the_jvm_that_r_joined_into_lines_are_no_work(watch: Watch) -> None:
    stack = "".join(
        f"org.toys.{kind.title()}.paint({kind.title()}.java:{n}) at \n" for n, kind in enumerate(WORDS)
    )
    assert (
        watch(f"Error: java.lang.IllegalStateException: no paint at \n{stack * 3}").verdict.state == "failed"
    )
