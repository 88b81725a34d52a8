"""Who may act for a job: the last word of a person, else the spec, and never against `disarm --all`."""

from __future__ import annotations

from pathlib import Path

from midwatch.agents.executor.arming import arming, disarm_all, lift_disarm_all, mark_job

JOB = "local:ann/r"


def armed(state: Path, *, armed_by_spec: bool = False) -> bool:
    return arming(state, JOB, armed_by_spec=armed_by_spec).armed


def test_without_a_word_the_spec_decides(tmp_path: Path) -> None:
    assert not armed(tmp_path)
    assert armed(tmp_path, armed_by_spec=True)


def test_a_persons_word_outweighs_the_spec_and_the_last_one_counts(tmp_path: Path) -> None:
    mark_job(tmp_path, JOB, armed=False, at=1.0)
    assert not armed(tmp_path, armed_by_spec=True)
    mark_job(tmp_path, JOB, armed=True, at=2.0)
    assert armed(tmp_path)


def test_a_word_on_one_job_is_none_on_another(tmp_path: Path) -> None:
    mark_job(tmp_path, "local:ann/other", armed=True, at=1.0)
    assert not armed(tmp_path)


def test_disarm_all_stops_every_job_until_it_is_lifted(tmp_path: Path) -> None:
    mark_job(tmp_path, JOB, armed=True, at=1.0)
    disarm_all(tmp_path, at=2.0)
    assert not armed(tmp_path, armed_by_spec=True)
    assert lift_disarm_all(tmp_path)
    assert armed(tmp_path)
    assert not lift_disarm_all(tmp_path)


def test_a_mark_that_cannot_be_read_is_a_no(tmp_path: Path) -> None:
    (tmp_path / "disarmed").write_text("torn {")
    answer = arming(tmp_path, JOB, armed_by_spec=True)
    assert not answer.armed
    assert "cannot be read" in answer.reason
