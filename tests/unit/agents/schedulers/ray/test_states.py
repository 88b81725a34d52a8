"""Every status of the Jobs API is mapped, and one that nobody knows is said to be unknown."""

from __future__ import annotations

from typing import Any

import pytest

from midwatch.agents.schedulers.ray.driver import driver_incarnation
from midwatch.agents.schedulers.ray.states import state, sweep


def job(status: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "SUBMISSION",
        "submission_id": "a1",
        "status": status,
        "metadata": {"midwatch_job": "ray:ann/x"},
    } | more


@pytest.mark.capability("S002-01")
@pytest.mark.parametrize(
    ("status", "more", "kind", "mode", "error_type"),
    [
        ("PENDING", {}, "queued", None, ""),
        ("RUNNING", {}, "running", None, ""),
        ("SUCCEEDED", {"driver_exit_code": 0}, "ended", "success", ""),
        ("STOPPED", {"driver_exit_code": -15}, "ended", "ended", "cancelled"),
        (
            "FAILED",
            {"driver_exit_code": 1, "error_type": "JOB_ENTRYPOINT_COMMAND_ERROR"},
            "ended",
            "crash",
            "",
        ),
        ("FAILED", {"error_type": "RUNTIME_ENV_SETUP_FAILURE"}, "ended", "crash", "config"),
        ("FAILED", {"error_type": "JOB_SUPERVISOR_ACTOR_DIED"}, "ended", "crash", "ray_actor_died"),
        (
            "FAILED",
            {"error_type": "JOB_SUPERVISOR_ACTOR_DIED", "message": "its node has died: raylet gone"},
            "ended",
            "crash",
            "ray_node_died",
        ),
        ("SUSPENDED", {}, "unknown", None, ""),
        ("", {}, "unknown", None, ""),
    ],
)
def test_each_status_has_its_state(
    status: str, more: dict[str, Any], kind: str, mode: str | None, error_type: str
) -> None:
    found = state(job(status, **more))
    assert (found.kind, found.mode, found.error_type, found.word) == (kind, mode, error_type, status)


def test_a_signal_is_told_from_an_exit_code_and_the_log_in_the_message_is_left_out() -> None:
    message = "Job entrypoint command failed with exit code 9, last available logs (truncated):\nsecret line"
    found = state(job("FAILED", driver_exit_code=-9, message=message))
    assert (found.exit_code, found.signal) == (None, 9)
    assert found.reason == "Job entrypoint command failed with exit code 9"


def test_drivers_without_a_submission_are_left_out_and_only_ours_carry_a_key() -> None:
    jobs = [
        job("RUNNING"),
        job("RUNNING", submission_id="theirs", metadata=None),
        {"type": "DRIVER", "submission_id": None, "status": "RUNNING"},
    ]
    found = sweep(jobs, "session_x")
    assert [(each.incarnation, each.effect_key) for each in found] == [
        ("ray:a1:session_x", "a1"),
        ("ray:theirs:session_x", ""),
    ]


def test_a_driver_knows_its_start_by_its_variables_and_the_place_of_its_output() -> None:
    variables = {"RAY_JOB_CONFIG_JSON_ENV_VAR": '{"metadata": {"job_submission_id": "a1"}}'}
    output = "/tmp/ray/session_2026-01-02_3/logs/job-driver-a1.log"  # noqa: S108  # a name, not a file
    assert driver_incarnation(variables, [output]) == "ray:a1:session_2026-01-02_3"
    assert driver_incarnation(variables, ["/var/log/x"]) == ""
    assert driver_incarnation({}, [output]) == ""
