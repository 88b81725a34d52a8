"""Saved words of Ray and of KubeRay."""

from __future__ import annotations

from typing import Any

import pytest

from midwatch.agents.schedulers.ray.saved_jobs import job_of, jobs_of_text


def rayjob(**status: str) -> dict[str, Any]:
    return {"kind": "RayJob", "metadata": {"name": "toy"}, "status": status}


@pytest.mark.parametrize(
    ("record", "shown"),
    [
        (
            rayjob(jobStatus="FAILED", message="Job entrypoint command failed with exit code 3"),
            ("ended", "FAILED", "crash", 3),
        ),
        (rayjob(jobStatus="SUCCEEDED", jobDeploymentStatus="Complete"), ("ended", "SUCCEEDED", "success", 0)),
        (rayjob(jobStatus="STOPPED", jobDeploymentStatus="Complete"), ("ended", "STOPPED", "ended", None)),
        (rayjob(jobStatus="", jobDeploymentStatus="Failed"), ("ended", "FAILED", "crash", None)),
        (
            rayjob(jobStatus="RUNNING", jobDeploymentStatus="Failed", reason="DeadlineExceeded"),
            ("ended", "FAILED", "timeout", None),
        ),
        (rayjob(jobStatus="FAILED", jobDeploymentStatus="Retrying"), ("ended", "REQUEUED", "ended", None)),
        (rayjob(jobStatus="", jobDeploymentStatus="Initializing"), ("queued", "Initializing", None, None)),
        (rayjob(), ("queued", "without a status", None, None)),
        (rayjob(jobStatus="RUNNING", jobDeploymentStatus="Running"), ("running", "RUNNING", None, None)),
        (
            {"status": "FAILED", "message": "Job entrypoint command failed with exit code -9, last"},
            ("ended", "FAILED", "crash", None),
        ),
        ({"status": "FAILED", "driver_exit_code": 4}, ("ended", "FAILED", "crash", 4)),
    ],
)
def test_each_record_has_its_end(
    record: dict[str, Any], shown: tuple[str, str, str | None, int | None]
) -> None:
    state = job_of(record).state
    assert (state.kind, state.word, state.mode, state.exit_code) == shown


def test_a_job_has_the_names_that_its_record_gives() -> None:
    assert job_of(rayjob(jobStatus="FAILED", jobId="toy-1")).names == ("toy", "toy-1")
    assert job_of({"status": "FAILED", "submission_id": "raysubmit_1", "job_id": None}).names == (
        "raysubmit_1",
    )


FAILED = "Status message: Job entrypoint command failed with exit code 3\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"Status for job 'raysubmit_1': FAILED\n{FAILED}", [("raysubmit_1", "FAILED", 3)]),
        (
            "Status for job 'raysubmit_1': RUNNING: Job is currently running.\n",
            [("raysubmit_1", "RUNNING", None)],
        ),
        (
            "\x1b[31m------\x1b[39m\n\x1b[31mJob 'raysubmit_1' failed\x1b[39m\n------\n" + FAILED,
            [("raysubmit_1", "FAILED", 3)],
        ),
        ("Job 'raysubmit_1' succeeded\n", [("raysubmit_1", "SUCCEEDED", 0)]),
        ("Job 'raysubmit_1' was stopped\n", [("raysubmit_1", "STOPPED", None)]),
        (
            f"Status for job 'a': RUNNING\nStatus for job 'a': FAILED\n{FAILED}Job 'b' succeeded\n",
            [("a", "FAILED", 3), ("b", "SUCCEEDED", 0)],
        ),
        ("the job failed\nJob 'raysubmit_1' submitted successfully\n", []),
    ],
)
def test_the_last_word_of_the_command_line_counts(
    text: str, shown: list[tuple[str, str, int | None]]
) -> None:
    assert [(job.names[0], job.state.word, job.state.exit_code) for job in jobs_of_text(text)] == shown
