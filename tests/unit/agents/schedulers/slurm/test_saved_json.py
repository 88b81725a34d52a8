"""SLURM's JSON, in the shapes of its versions."""

from __future__ import annotations

from typing import Any

import pytest

from midwatch.agents.schedulers.slurm.saved_json import rows_of_json
from midwatch.agents.schedulers.slurm.saved_rows import SavedRow


def number(value: int | None) -> dict[str, Any]:
    return {"set": value is not None, "infinite": False, "number": value or 0}


@pytest.mark.parametrize(
    ("job", "row"),
    [
        ({"job_id": 77, "job_state": "FAILED", "exit_code": 768}, SavedRow("77", "FAILED", "", 3, raw="77")),
        ({"job_id": 77, "job_state": "FAILED", "exit_code": 9}, SavedRow("77", "FAILED", "", 0, 9, raw="77")),
        ({"job_id": 77, "job_state": "FAILED", "exit_code": 0}, SavedRow("77", "FAILED", raw="77")),
        (
            {
                "job_id": 79,
                "array": {"job_id": 77, "task_id": number(1)},
                "state": {"current": ["NODE_FAIL"], "reason": "NodeDown"},
                "exit_code": {"return_code": number(1), "signal": {"id": number(None)}},
            },
            SavedRow("77_1", "NODE_FAIL", "NodeDown", 1, raw="79"),
        ),
        (
            {"job_id": 79, "array_job_id": number(77), "array_task_id": number(0), "job_state": ["TIMEOUT"]},
            SavedRow("77_0", "TIMEOUT", raw="79"),
        ),
        (
            {"job_id": 77, "array": {"job_id": 0, "task_id": None}, "state": {"current": "COMPLETED"}},
            SavedRow("77", "COMPLETED", raw="77"),
        ),
        (
            {"job_id": 78, "het_job_id": number(77), "het_job_offset": number(1), "job_state": ["FAILED"]},
            SavedRow("77", "FAILED", part="+1", raw="78"),
        ),
        (
            {"job_id": 77, "state": {"current": ["CANCELLED"]}, "kill_request_user": "root"},
            SavedRow("77", "CANCELLED by root", raw="77"),
        ),
        (
            {"job_id": 77, "state": {"current": ["FAILED"]}, "kill_request_user": "root"},
            SavedRow("77", "FAILED", raw="77"),
        ),
        (
            {"job_id": 77, "job_state": ["COMPLETING", "NODE_FAIL"], "state_reason": "NodeDown"},
            SavedRow("77", "NODE_FAIL", "NodeDown", raw="77"),
        ),
        (
            {"job_id": 77, "job_state": ["PENDING", "REQUEUED"], "restart_cnt": number(2)},
            SavedRow("77", "REQUEUED", raw="77", restarts=2),
        ),
    ],
)
def test_each_shape_gives_its_row(job: dict[str, Any], row: SavedRow) -> None:
    assert list(rows_of_json(job)) == [row]


def test_steps_follow_their_job() -> None:
    steps = [
        {"state": ["OUT_OF_MEMORY"], "step": {"id": "77.0"}},
        {"state": "FAILED", "step": {"id": {"job_id": 77, "step_id": "batch"}}},
        {"state": None},
        7,
    ]
    rows = rows_of_json({"job_id": 77, "state": {"current": ["FAILED"]}, "steps": steps})
    assert [(row.part, row.word) for row in rows] == [
        ("", "FAILED"),
        ("0", "OUT_OF_MEMORY"),
        ("batch", "FAILED"),
    ]


@pytest.mark.parametrize("job", [{}, {"job_state": None}, {"state": {"current": []}}, {"state": 7}])
def test_what_shows_no_state_gives_no_row(job: dict[str, Any]) -> None:
    assert list(rows_of_json(job)) == []
