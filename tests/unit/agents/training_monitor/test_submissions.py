"""Which submissions are starts of one training, and what its next start is."""

from __future__ import annotations

from typing import Any

import pytest

from midwatch.agents.training_monitor.errors import JobNotFound
from midwatch.agents.training_monitor.head.submissions import (
    named,
    start_key,
    starts,
    successor,
    without_shell,
)
from midwatch.agents.training_monitor.restart import delay_before
from midwatch.streams.errors import UsageError
from midwatch.streams.records.effect_keys import effect_key


def job(submission: str, began: int, *, attempt: str = "", **more: Any) -> dict[str, Any]:
    runtime = {"env_vars": {"MIDWATCH_ATTEMPT": attempt}} if attempt else {}
    return {"submission_id": submission, "start_time": began, "runtime_env": runtime, "metadata": {}, **more}


def watched(submission: str, began: int, attempt: str = "", name: str = "ray:ann/run") -> dict[str, Any]:
    return job(submission, began, attempt=attempt, metadata={"midwatch_job": name})


@pytest.mark.parametrize("name", ["ray:ann/run", "training_monitor/raysubmit_1", "ray:ann/läuft"])
def test_a_start_has_the_id_that_the_executor_gives_it(name: str) -> None:
    assert start_key(name, 3) == effect_key(name, 3, "start")


def test_the_attempts_of_a_job_of_midwatch_are_counted_as_midwatch_counts_them() -> None:
    """The second use of the name begins with a start that carries no number."""
    jobs = [watched("b", 20, "2"), watched("a", 10), watched("c", 30), watched("d", 40, "4"), job("x", 5)]
    found = starts(jobs, "ray:ann/run")
    assert [(start.submission_id, start.attempt, start.retries) for start in found] == [
        ("a", 1, 0),
        ("b", 2, 1),
        ("c", 3, 0),
        ("d", 4, 1),
    ]


def test_a_training_is_meant_by_id_by_name_or_by_the_job_of_midwatch() -> None:
    jobs = [job("a", 1, metadata={"job_name": "grpo"}), watched("b", 2)]
    assert named(jobs, "a", "head") == named(jobs, "grpo", "head") == "training_monitor/a"
    assert named(jobs, "run", "head") == named(jobs, "ray:ann/run", "head") == "ray:ann/run"
    with pytest.raises(JobNotFound, match="ray job list"):
        named(jobs, "c", "head")
    with pytest.raises(UsageError, match=r"ray:ann/run or ray:bob/run"):
        named([*jobs, watched("d", 3, name="ray:bob/run")], "run", "head")


def test_the_next_start_is_the_same_but_for_its_checkpoint_and_number() -> None:
    first = job("a", 1, entrypoint="python t.py --load /c/step_5", metadata={"team": "nlp"})
    first["runtime_env"] = {"env_vars": {"MODE": "x", "MIDWATCH_RESUME_FROM": "/c/step_5"}}
    (start,) = starts([first], "training_monitor/a")
    wanted = successor(start, "training_monitor/a", "/c/step_9", 9)
    assert wanted["entrypoint"] == "exec python t.py --load /c/step_9"
    assert wanted["runtime_env"]["env_vars"] == {
        "MODE": "x",
        "MIDWATCH_ATTEMPT": "2",
        "MIDWATCH_RESUME_FROM": "/c/step_9",
        "MIDWATCH_RESUME_STEP": "9",
    }
    after = {**wanted, "start_time": 2}
    assert [(s.attempt, s.retries) for s in starts([first, after], "training_monitor/a")] == [(1, 0), (2, 1)]
    assert after["metadata"]["team"] == "nlp"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("python t.py", "exec python t.py"),
        ("cd /app && python t.py", "cd /app && python t.py"),
        ("A=1 python t.py", "A=1 python t.py"),
        ("exec python t.py", "exec python t.py"),
        ("python 'open", "python 'open"),
    ],
)
def test_a_single_command_replaces_its_shell(given: str, kept: str) -> None:
    assert without_shell(given) == kept


@pytest.mark.capability("S002-07", "S002-08")
def test_the_delay_before_a_retry_doubles_up_to_an_hour() -> None:
    assert [delay_before(retry, 60) for retry in (1, 2, 3, 7, 100)] == [60, 120, 240, 3600, 3600]
    assert delay_before(9, 7200) == 7200
