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


ENTRY = "Job entrypoint command failed with exit code 1, last available logs (truncated to 20,000 chars):\n"
MEMORY = (
    "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n"
    "Memory on the node (IP: 10.0.0.9) was 30.4GB / 32.0GB (0.95). Top 10 memory users:\n77  8.47  toy\n"
)


@pytest.mark.parametrize(
    ("lines", "error_type"),
    [
        (f"winding the toy\n{MEMORY}", "host_oom"),
        (f"{MEMORY}KeyError: 'wheels'\n", ""),
        (f"ValueError: caught\n{MEMORY}", "host_oom"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n", ""),
        (f"the toy printed {MEMORY}", ""),
        ("", ""),
    ],
)
def test_the_last_lines_in_ray_s_message_may_end_in_its_word_on_memory(lines: str, error_type: str) -> None:
    state = job_of({"status": "FAILED", "driver_exit_code": 1, "message": ENTRY + lines}).state
    assert state.error_type == error_type
    assert state.reason.startswith("Job entrypoint command failed with exit code 1")
    assert ("killed due to the node running low on memory" in state.reason) == bool(error_type)
    (told,) = jobs_of_text(f"Status for job 'raysubmit_a': FAILED\nStatus message: {ENTRY}{lines}\n")
    assert told.state.error_type == error_type


def test_a_job_that_was_stopped_did_not_end_by_its_memory() -> None:
    assert job_of({"status": "STOPPED", "message": ENTRY + MEMORY}).state.error_type == "cancelled"
