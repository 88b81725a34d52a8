"""A saved log whose last lines are a failure that no rule knows. A person decides; the lines prove it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midwatch.agents.replay.endings.closing_lines import closing_failure
from midwatch.agents.replay.reading.log_files import LogFile, last_lines
from unit.agents.conftest import Watch

STEPS = "step 1 loss 2.0\nstep 2 loss 1.9\n"
OPEN = """Traceback (most recent call last):
  File "/toy/train.py", line 17, in <module>
    main()
  File "/toy/train.py", line 9, in main
    toy.turn(wheel)
"""


@pytest.mark.parametrize(
    "prefix",
    [
        "",
        "[rank3]: ",
        "3: ",
        "(Trainer pid=77) ",
        "[3] ",
        "[3]:",
        "algo-1-toy | ",
        "toy-worker-0 trainer ",
        "toy-job\tRun the toy\t2026-03-02T11:52:40.1180000Z ",
    ],
)
def test_a_log_that_ends_within_a_traceback_has_failed(watch: Watch, prefix: str) -> None:
    done = watch(STEPS + "".join(f"{prefix}{line}\n" for line in OPEN.splitlines()))
    assert (done.verdict.state, done.verdict.error_type) == ("failed", "exception")
    assert done.verdict.root_line == f"{prefix}    toy.turn(wheel)"
    assert done.decision.action == "hold"
    assert done.decision.reason == "the log ends within a traceback"


def test_the_clock_of_a_collector_may_go_on_within_a_traceback(watch: Watch) -> None:
    clock = "toy\tRun\t2026-03-02T11:52:4{}.1180000Z "
    log = "".join(f"{clock.format(n)}{line}\n" for n, line in enumerate(OPEN.splitlines()))
    assert watch(STEPS + log).decision.reason == "the log ends within a traceback"
    other = log.replace("toy\tRun\t", "toy\tRest\t").partition("\n")[2]
    assert watch(STEPS + log.partition("\n")[0] + "\n" + other).verdict.state == "healthy"


def test_a_clock_in_a_line_of_its_own_parts_no_traceback(watch: Watch) -> None:
    log = "".join(f"{line}\n2026-03-02 11:52:40\n\n" for line in OPEN.splitlines())
    assert watch(STEPS + log).decision.reason == "the log ends within a traceback"


def test_the_line_is_shown_with_its_colours(watch: Watch) -> None:
    line = "\x1b[33m(autoscaler +7s)\x1b[0m Error: No available node types can fulfill resource request {}"
    done = watch(f"the toys wait\n{line}\n")
    assert (done.verdict.error_type, done.verdict.root_line) == ("config", line)


def test_a_line_that_every_rank_repeats_stays_known(watch: Watch) -> None:
    log = STEPS + "".join(f"{rank}: gdrcopy open failed\n" for rank in range(8))
    assert watch(log).verdict.state == "healthy"
    assert watch(log.replace("gdrcopy", "toymesh")).verdict.state == "failed"


NOTEBOOK = "-" * 75 + "\n{}Error                          Traceback (most recent call last)\n"
CELL = "Cell In[3], line 2\n      1 toy = Toy()\n----> 2 toy.turn(wheel)\n      3 toy.stop()\n"
OLD_CELL = "<ipython-input-7-abc0> in <module>\n      1 toy = Toy()\n----> 2 toy.turn(wheel)\n"
BELOW = "\nFile ~/toy/wheel.py:9, in turn(self)\n      8 def turn(self):\n----> 9     wheel.turn()\n"


@pytest.mark.parametrize(
    ("text", "root"),
    [
        (CELL, "----> 2 toy.turn(wheel)"),
        (OLD_CELL, "----> 2 toy.turn(wheel)"),
        (CELL + BELOW, "----> 9     wheel.turn()"),
    ],
)
def test_a_log_that_ends_within_the_traceback_of_a_notebook_has_failed(
    watch: Watch, text: str, root: str
) -> None:
    done = watch(STEPS + NOTEBOOK.format("Value") + text)
    assert (done.verdict.error_type, done.verdict.root_line) == ("exception", root)
    assert done.decision.action == "hold"
    assert watch(STEPS + NOTEBOOK.format("Value") + text + STEPS).verdict.state == "healthy"


@pytest.mark.parametrize(
    ("name", "error_type"), [("OutOfMemory", "oom"), ("toy.Memory", "host_oom"), ("Import", "import_error")]
)
@pytest.mark.parametrize("text", ["", CELL])
def test_the_heading_of_a_notebook_names_the_kind(
    watch: Watch, text: str, name: str, error_type: str
) -> None:
    done = watch(STEPS + NOTEBOOK.format(name) + text)
    assert (done.verdict.error_type, done.decision.action) == (error_type, "hold")
    assert done.verdict.root_line.startswith(f"{name}Error ")


def waits(count: int, came: int = 1) -> str:
    return "".join(
        f"[2026-03-02 10:00:{at}0,371][toy][INFO] - Waiting in store based barrier to initialize "
        f"process group for rank: 0, key: store_based_barrier_key:1 "
        f"(world_size=2, worker_count={came}, timeout=0:30:00)\n"
        for at in range(count)
    )


def test_a_log_that_ends_at_a_barrier_at_which_ranks_are_missing_has_failed(watch: Watch) -> None:
    done = watch("the toy starts\n" + waits(3))
    assert (done.verdict.error_type, done.verdict.root_line_number) == ("rendezvous", 2)
    assert done.decision.action == "hold"


@pytest.mark.parametrize(
    "wait",
    [
        "2026-03-02 10:0{}:07.4: I toy/master.cc:9] CreateSession still waiting for response from worker: "
        "/job:ps/replica:0/task:1\n",
        "toy4:77:79 [0] NCCL INFO socketPollConnect: connect returned No route to host, retrying ({}/5)\n",
        "I0302 10:0{}:07.4 79 toy.cpp:9] LoadServer n4 Failed at 7 times error_code 14 error_message no\n",
        "[10:0{}:00] toy: still waiting for 3 more workers\n",
        "toy: waiting for the master, try {}\n",
    ],
)
def test_a_process_that_waits_in_vain_at_the_end_has_failed(watch: Watch, wait: str) -> None:
    waits = "".join(wait.format(number) for number in range(4))
    done = watch("the toy starts\n" + waits)
    assert (done.verdict.error_type, done.verdict.root_line_number) == ("rendezvous", 2)
    assert watch("the toy starts\n" + waits + "the toy runs\n").verdict.state == "unknown"


def test_a_log_that_ends_in_a_port_which_another_process_holds_has_failed(watch: Watch) -> None:
    taken = (
        "[W socket.cpp:9] [c10d] The server socket has failed to {} [::]:29517"
        " (errno: 98 - Address already in use).\n"
    )
    log = "the toy starts\n" + taken.format("listen on") + taken.format("bind to")
    assert watch(log).verdict.error_type == "port_in_use"
    assert watch(log).decision.action == "hold"
    assert watch(log + "the toys have met\n").verdict.state == "unknown"


def test_behind_steps_a_few_waits_for_workers_are_no_failure(watch: Watch) -> None:
    assert watch(STEPS + "toy: waiting for workers\n" * 4).verdict.state == "healthy"


def test_lightgbm_waits_for_its_ranks_too(watch: Watch) -> None:
    wait = "[LightGBM] [Warning] Connecting to rank 1 failed, waiting for 77 milliseconds\n"
    assert watch("[LightGBM] [Info] Listening...\n" + wait * 3).verdict.error_type == "rendezvous"
    assert watch(wait * 3 + "[LightGBM] [Info] Connected to rank 1\n").verdict.state == "unknown"


@pytest.mark.parametrize("text", [waits(1), waits(3, came=2), waits(3) + "Rank 0: Completed the barrier\n"])
def test_a_short_wait_and_one_that_ended_are_no_failure(watch: Watch, text: str) -> None:
    assert watch("the toy starts\n" + text).verdict.state == "unknown"


def test_the_heading_of_a_notebook_tells_more_than_the_code_where_a_library_s_exception_is_named(
    watch: Watch,
) -> None:
    done = watch(STEPS + NOTEBOOK.format("WheelTurned") + CELL)
    assert done.verdict.root_line.startswith("WheelTurnedError ")
    assert done.verdict.error_type == "exception"


BOX = (
    "╭──────────── Traceback (most recent call last) ────────────╮\n"
    "│ /toy/train.py:9 in main                                   │\n"
    "│   8 │   wheel = Wheel()                                   │\n"
    "│ ❱ 9 │   toy.turn(wheel)                                   │\n"
    "│  10 │   toy.stop()                                        │\n"
)


def test_a_log_that_ends_within_the_traceback_that_rich_draws_has_failed(watch: Watch) -> None:
    done = watch(STEPS + BOX)
    assert (done.verdict.error_type, done.decision.action) == ("exception", "hold")
    assert done.verdict.root_line.startswith("│ ❱ 9 │   toy.turn(wheel)")
    assert watch(STEPS + BOX + STEPS).verdict.state == "healthy"
    assert watch(STEPS + BOX.replace("Traceback (most recent call last)", "toy")).verdict.state == "healthy"


@pytest.mark.parametrize("last", ["    ^^^^^^^^^^^^^^^\n", "[...]\n\n"])
def test_its_root_is_the_last_line_of_code(watch: Watch, last: str) -> None:
    assert watch(STEPS + OPEN + last).verdict.root_line == "    toy.turn(wheel)"


def test_what_the_program_said_right_above_is_the_root(watch: Watch) -> None:
    why = "the wheel could not be turned, the toy ends"
    assert watch(f"{STEPS}{why}\n{OPEN}").verdict.root_line == why


def test_a_warning_above_that_a_rule_knows_gives_its_type(watch: Watch) -> None:
    why = "WARNING - toy.store - ToyError: no space left on device"
    done = watch(f"{STEPS}{why}\n{OPEN}")
    assert (done.verdict.error_type, done.verdict.root_line) == ("storage", why)


@pytest.mark.parametrize(
    "log",
    [
        STEPS + OPEN + "step 3 loss 1.8\n",
        STEPS + "Exception ignored in: <function Toy.__del__ at 0x7f01>\n" + OPEN,
        STEPS + "Exception in thread Toy-1:\n" + OPEN,
        STEPS + "".join(f"INFO:toy:{line}\n" for line in OPEN.splitlines()),
        STEPS + OPEN.removeprefix("Traceback (most recent call last):\n"),
        STEPS + "Current thread 0x7f01 (most recent call first):\n" + OPEN.partition("\n")[2],
    ],
)
def test_other_frames_at_an_end_are_no_failure(watch: Watch, log: str) -> None:
    assert watch(log).verdict.state != "failed"


@pytest.mark.parametrize(
    "errors",
    [
        ("2026-03-02 11:52:40.118 77:78 ERROR  TOY:wheel_turn   the wheel is missing",),
        ("[2026-03-02 11:52:40] FATAL the toy met a wall", "[2026-03-02 11:52:40] ERROR the toy is bent"),
        ("2026-Mar-02 11:52:40.118 77:78 ERROR   TOY:wheel   [rank 0] no wheel, err: 4",),
        ("(main_task pid=77) Error reading the toy: it has three wheels",),
        ("Failed to wind the toy up",),
        ('{"time": "11:52:40", "level": "ERROR", "message": "ToyFault: the wheel is missing"}',),
        ('{"msg": "the wheel is missing", "levelname": "CRITICAL"}',),
        ('time=2026-03-02T11:52:40Z level=fatal msg="the wheel is missing"',),
        ("E0302 11:52:40.118290    77 toy.cc:9] the wheel is missing",),
        ("[E302 11:52:40.118290 toy.cpp:9] the wheel is missing",),
        ("error: the wheel is missing, giving up",),
        ("ERROR:toy:the wheel is missing. Skipping is not allowed here",),
    ],
)
def test_an_error_as_the_last_line_is_a_failure_though_no_rule_knows_it(
    watch: Watch, errors: tuple[str, ...]
) -> None:
    done = watch(STEPS + "\n".join(errors) + "\n")
    assert (done.verdict.error_type, done.verdict.root_line) == ("exception", errors[0])
    assert (done.decision.action, done.decision.reason) == (
        "hold",
        "the log ends with an error that no rule knows",
    )


def test_a_log_that_ends_within_the_name_of_its_exception_says_nothing_of_its_kind(watch: Watch) -> None:
    done = watch(STEPS + OPEN + "toy.WheelErr")
    assert (done.verdict.error_type, done.verdict.transient) == ("exception", None)
    assert done.verdict.root_line == "toy.WheelErr"
    assert done.decision.action == "hold"
    assert done.decision.reason == "the log ends within the name of the exception"
    for whole in ("toy.WheelErr\n", "toy.WheelError", "toy.WheelError: it is"):
        assert "ends within" not in watch(STEPS + OPEN + whole).decision.reason


def test_a_record_of_many_fields_is_read_in_time(watch: Watch) -> None:
    fields = " ".join(f'toy{n}="wheel"' for n in range(400))
    assert watch(f"{STEPS}{fields} level=info err=none\n").verdict.state == "healthy"
    assert watch(f"{STEPS}{fields} level=error err=none\n").verdict.state == "failed"


def test_what_a_transport_complains_of_counts_only_where_nothing_follows(watch: Watch) -> None:
    words = "[1714000000.118290] [n4:77  :0]     toy.c:9    UCX  ERROR the wheel of the port is missing\n"
    done = watch(STEPS + words)
    assert (done.verdict.error_type, done.decision.action) == ("communication", "hold")
    assert watch(STEPS + words + STEPS).verdict.state == "healthy"


@pytest.mark.parametrize(
    ("last", "error_type"),
    [
        ("^C", "user_interrupt"),
        ("^C^C^Z", "user_interrupt"),
        ("User defined signal 1", "cancelled"),
        ("Aborted", "native_crash"),
        ("[rank3]: Out of memory", "host_oom"),
    ],
)
def test_what_a_terminal_or_a_shell_prints_at_an_end_is_one(watch: Watch, last: str, error_type: str) -> None:
    done = watch(f"{STEPS}{last}\n")
    assert (done.verdict.error_type, done.verdict.root_line) == (error_type, last)
    assert done.decision.action == "hold"
    assert watch(f"{STEPS}{last}\n{STEPS}").verdict.state == "healthy"


@pytest.mark.parametrize(
    "end",
    [
        "2026-03-02 11:52:40 ERROR the wheel is missing\nthe toy goes on without it\n",
        "Error rate: 0.12\n",
        "error 0.031 at epoch 4\n",
        "Failed: 0\n",
        "the toy looks for the word ERROR in its log\n",
        "WARNING the toy met an ERROR\n",
        "wandb: ERROR the file was not uploaded\n",
        '{"level": "WARNING", "message": "the toy met an error"}\n',
        '{"logging": {"level": "error", "message": "short"}}\n',
        '{"level": "error", "toys": 3}\n',
        "time=11:52:40 level=warn msg=error\n",
        "python toy.py level=error\n",
        "W0302 11:52:40.118290    77 toy.cc:9] the wheel is missing\n",
        "E0000 00:00:1714000000.118290    77 toy_blas.cc:9] Unable to register the toy twice\n",
        "error: 0.031\n",
        "ERROR:toy:No toy_engine was found! Will fall back to toy.save. Details: no wheel\n",
        "2026-03-02 11:52:40 ERROR toy: cannot open the card of the toy, skipping it\n",
        "[rank3]: Error at toy 7: no wheel. Skipping.\n",
    ],
)
def test_a_last_line_that_only_names_errors_is_none(watch: Watch, end: str) -> None:
    assert watch(STEPS + end).verdict.state == "healthy"


def test_a_job_that_reported_its_success_did_not_fail_at_its_end(watch: Watch) -> None:
    steps = "".join(f"{{'loss': {2 / n:.2f}, 'learning_rate': 1e-05, 'epoch': {n}.0}}\n" for n in range(1, 4))
    done = "{'train_runtime': 91.2, 'train_samples_per_second': 3.3, 'train_loss': 1.2, 'epoch': 3.0}\n"
    assert watch(steps + done + OPEN).verdict.state == "healthy"


@given(
    st.lists(st.sampled_from([*OPEN.splitlines(), "", "x", "ERROR toy", "\x1b[31mred", "a\rb"]), max_size=40)
)
def test_a_closing_failure_names_a_line_of_the_file(lines: list[str]) -> None:
    file = LogFile("log", "\n".join(lines).encode(), 0.0)
    found = closing_failure(file, ())
    assert found is None or found.number in dict(last_lines(file))


@pytest.mark.parametrize("text", ["", "a", "a\n", "a\nb", "a\nb\n", "a\n\n", "x" * 70_000 + "\nb\nc\n"])
def test_last_lines_have_the_numbers_of_the_file(text: str) -> None:
    lines = text.removesuffix("\n").split("\n")
    for number, line in last_lines(LogFile("log", text.encode(), 0.0)):
        assert lines[number - 1].encode() == line


BAR = " 64%|######4   | 3180/5000 [6:07:55<1:09:45,  2.30s/it, Loss=0.619]"


@pytest.mark.parametrize(
    ("last", "error_type"),
    [
        (f"{BAR}^C", "user_interrupt"),
        ("epoch 3 step 300 loss 0.5^C^C", "user_interrupt"),
        ("a pattern such as a^C", ""),
        ("press ^C to end the step", ""),
    ],
)
def test_an_interrupt_at_the_end_of_a_bar_is_one(watch: Watch, last: str, error_type: str) -> None:
    assert watch(f"{STEPS}{last}\n").verdict.error_type == error_type
    assert watch(f"{STEPS}{last}\n{STEPS}").verdict.state == "healthy"


def test_a_traceback_behind_an_interrupt_is_cut_by_it(watch: Watch) -> None:
    for cut in (OPEN.replace("Traceback", "^CTraceback"), f"^CProcess Toy-7:\nProcess Toy-8:\n{OPEN}"):
        assert watch(STEPS + cut).verdict.error_type == "user_interrupt"
    assert watch(STEPS + OPEN).verdict.error_type == "exception"


@pytest.mark.parametrize(
    "line",
    [
        f"ERROR 2026-03-02T10:00:00.118290 {BAR}",
        "ERROR 2026-03-02T10:00:00.118290 epoch 3 loss 0.41",
        "ERROR 2026-03-02T10:00:00.118290 UserWarning: the toy is old",
        "ERROR 2026-03-02T10:00:00.118290 toy: Network error resolved, resuming normal operation.",
        "==4188== ERROR SUMMARY: 0 errors from 0 contexts (suppressed: 0 from 0)",
        "[11:52:40] ERROR: ",
    ],
)
def test_a_collector_that_stamps_all_of_stderr_tells_of_no_error(watch: Watch, line: str) -> None:
    assert watch(f"{STEPS}{line}\n").verdict.state == "healthy"
    assert watch(f"{STEPS}ERROR 2026-03-02T10:00:00.118290 the toy store is gone\n").verdict.state == "failed"


SKIPS = "[toy] 2026-03-02 19:22:52,{:03d} (trainer:581) WARNING: The grad norm is {}. Skipping the model.\n"


@pytest.mark.parametrize(
    ("norms", "error_type"),
    [(["nan"] * 7, "numerical_instability"), (["nan"] * 3, ""), ([*["nan"] * 6, "1.9", "nan"], "")],
)
def test_step_after_step_without_a_finite_gradient_is_broken(
    watch: Watch, norms: list[str], error_type: str
) -> None:
    done = watch(STEPS + "".join(SKIPS.format(n, norm) for n, norm in enumerate(norms)))
    assert done.verdict.error_type == error_type
    assert (done.decision.action == "hold") == (error_type != "")


def test_the_last_lines_of_a_later_start_hold_none_of_the_start_before() -> None:
    before, later = "the first start fails\n" * 5, "the next start begins\n"
    file = LogFile("log", (before + later).encode(), 0.0, start=(len(before), 6))
    assert last_lines(file) == [(6, later.rstrip().encode())]
    long = replace(file, content=(before + later * 5000).encode())
    assert {line for _, line in last_lines(long)} == {later.rstrip().encode()}
    assert last_lines(long)[-1][0] == 5005
    ended = replace(file, content=(before + later + before).encode(), stop=len(before + later))
    assert last_lines(ended) == [(6, later.rstrip().encode())]
