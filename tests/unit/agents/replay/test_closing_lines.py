"""A saved log whose last lines are a failure that no rule knows. A person decides; the lines prove it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midwatch.agents.replay.closing_lines import closing_failure
from midwatch.agents.replay.log_files import LogFile, last_lines
from unit.agents.conftest import Watch

STEPS = "step 1 loss 2.0\nstep 2 loss 1.9\n"
OPEN = """Traceback (most recent call last):
  File "/toy/train.py", line 17, in <module>
    main()
  File "/toy/train.py", line 9, in main
    toy.turn(wheel)
"""


@pytest.mark.parametrize("prefix", ["", "[rank3]: ", "3: ", "(Trainer pid=77) "])
def test_a_log_that_ends_within_a_traceback_has_failed(watch: Watch, prefix: str) -> None:
    done = watch(STEPS + "".join(f"{prefix}{line}\n" for line in OPEN.splitlines()))
    assert (done.verdict.state, done.verdict.error_type) == ("failed", "exception")
    assert done.verdict.root_line == f"{prefix}    toy.turn(wheel)"
    assert done.decision.action == "hold"
    assert done.decision.reason == "the log ends within a traceback"


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
