"""What stands behind a good end: an evaluation after the training, and a crash in the teardown."""

from __future__ import annotations

import pytest

from midwatch.agents.decide.decision import Rulebook
from midwatch.agents.policies.loader import load_policy
from midwatch.agents.replay.job_replay import replay
from midwatch.agents.replay.reading.log_files import LogFile
from midwatch.agents.replay.scheduler_record import from_exit_code
from midwatch.agents.rulesets.bundles import watched_rules
from midwatch.rules.detectors.limits import WatchLimits
from unit.agents.conftest import Watch

DONE = "`Trainer.fit` stopped: `max_steps=5000` reached.\n"
TEARDOWN = (
    "Exception ignored in: <function Loader.__del__ at 0x7f00>\n"
    "Traceback (most recent call last):\n"
    '  File "/toy/loader.py", line 31, in __del__\n'
    "    self.close()\n"
    "AttributeError: 'NoneType' object has no attribute 'close'\n"
)


def steps(count: int) -> str:
    return "".join(f"step: {step}  loss:  {3 - step / 10_000:.4f}\n" for step in range(1, count + 1))


def evaluation(batches: int) -> str:
    return "".join(
        f"Evaluating: {100 * each // batches}%|###  | {each}/{batches} [00:0{each % 9}<00:09, 4.1it/s]\n"
        for each in range(batches)
    )


def test_an_evaluation_after_thousands_of_steps_is_healthy(watch: Watch) -> None:
    done = watch(steps(5_000) + DONE + evaluation(500))
    assert done.verdict.state == "healthy"
    assert done.verdict.step == 5_000


def test_an_exception_that_python_ignores_in_the_teardown_fails_no_run(watch: Watch) -> None:
    done = watch(steps(5_000) + DONE + TEARDOWN)
    assert (done.verdict.state, done.decision.action) == ("healthy", "none")


def test_an_evaluation_that_fails_after_the_training_is_a_failure(watch: Watch) -> None:
    done = watch(steps(5_000) + evaluation(50) + TEARDOWN.partition("\n")[2])
    assert done.verdict.state == "failed"
    assert done.verdict.root_line_number == 5_000 + 50 + 4


@pytest.mark.parametrize(("end", "state"), [("", "healthy"), ("again", "failed")])
def test_the_last_of_many_equal_failures_ended_the_run_and_those_before_it_did_not(
    watch: Watch, end: str, state: str
) -> None:
    raised = (
        "Traceback (most recent call last):\n"
        '  File "/toy/train.py", line 7, in step\n'
        "    forward(batch)\n"
        "RuntimeError: CUDA error: an illegal memory access was encountered\n"
    )
    got_over = "".join(f"step: {at}  loss:  2.5\n{raised}" for at in range(1, 90))
    rest = "".join(f"step: {at}  loss:  2.5\n" for at in range(90, 140))
    assert watch(got_over + rest + (raised if end else "")).verdict.state == state


def remedy_of(log: str, exit_code: int) -> str:
    policy = load_policy("verdict")
    book = Rulebook({policy.name: policy}, sign=lambda command: command, default_policy=policy.name)
    files = [LogFile("log", log.encode(), 0.0)]
    watched, end = watched_rules(("default",), scan=False), from_exit_code(exit_code)
    return replay("replay:file/log", files, watched, book, WatchLimits(), end=end).verdict.remedy


def test_a_failed_end_behind_the_job_s_own_success_is_told_with_it() -> None:
    crash = "[rank0]:Fatal Python error: Aborted\n"
    hint = "The job had reported its success in log:10. "
    assert hint in remedy_of(steps(9) + DONE + crash, 134)
    assert hint in remedy_of(steps(9) + DONE, 1)
    assert "success" not in remedy_of(steps(9) + crash, 134)
    assert "success" not in remedy_of(steps(9) + DONE, 0)
    assert "success" not in remedy_of(steps(9) + DONE + steps(5) + crash, 134)
