"""The end of a job, from the rows of its starts and of their parts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midwatch.agents.schedulers.slurm.saved_rows import SavedRow, jobs_in
from midwatch.agents.schedulers.slurm.text import STATES, job_state, whole_word


def state(*rows: SavedRow) -> tuple[str, str, str]:
    (job,) = jobs_in(rows)
    return job.state.kind, job.state.word, job.state.error_type


@pytest.mark.parametrize(
    ("cut", "whole"),
    [
        ("OUT_OF_ME+", "OUT_OF_MEMORY"),
        ("OUT_OF_MEM+", "OUT_OF_MEMORY"),
        ("COMPLETI+", "COMPLETING"),
        ("CANCELLED+", "CANCELLED"),
        ("NODE_F+", "NODE_FAIL"),
        ("OUT+ by 7", "OUT_OF_MEMORY by 7"),
        ("CANCELLED by 10+", "CANCELLED by 10+"),
        ("PREEMPTED", "PREEMPTED"),
        ("A_STATE_OF_2031", "A_STATE_OF_2031"),
    ],
)
def test_a_cut_state_is_the_one_that_begins_so(cut: str, whole: str) -> None:
    assert whole_word(cut) == whole


@pytest.mark.parametrize(
    ("cut", "why"),
    [("COMPLE+", "COMPLETED, COMPLETING"), ("RE+", "several states"), ("XYZ+", "no state begins so")],
)
def test_a_cut_that_fits_several_states_or_none_is_refused(cut: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        whole_word(cut)


@given(st.sampled_from(sorted(STATES)), st.integers(1, 20))
def test_no_cut_is_read_as_another_state(word: str, width: int) -> None:
    cut = word if len(word) <= width else f"{word[: width - 1]}+"
    try:
        assert whole_word(cut) == word or cut[:-1] in STATES
    except ValueError:
        assert len([each for each in STATES if each.startswith(cut[:-1])]) > 1


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("NODE_FAIL", "COMPLETED"), ("ended", "COMPLETED", "")),
        (("NODE_FAIL", "REQUEUED", "FAILED"), ("ended", "FAILED", "slurm_failure")),
        (("COMPLETED", "NODE_FAIL"), ("ended", "NODE_FAIL", "slurm_failure")),
        (("PREEMPTED", "PENDING"), ("ended", "REQUEUED", "")),
        (("PREEMPTED", "RUNNING"), ("ended", "REQUEUED", "")),
        (("RUNNING",), ("running", "RUNNING", "")),
        (("REQUEUED",), ("ended", "REQUEUED", "")),
        (("SPECIAL_EXIT",), ("ended", "REQUEUED", "")),
    ],
)
def test_the_last_start_counts(words: tuple[str, ...], expected: tuple[str, str, str]) -> None:
    assert state(*(SavedRow("77", word) for word in words)) == expected


@pytest.mark.parametrize(
    ("row", "word"),
    [
        (SavedRow("77", "PENDING", "BeginTime", restarts=1), "REQUEUED"),
        (SavedRow("77", "RUNNING", restarts=1), "REQUEUED"),
        (SavedRow("77", "PENDING", "launch_failed_requeued_held"), "REQUEUED"),
        (SavedRow("77", "REQUEUE_HOLD", "job_requeued_in_held_state"), "REQUEUED"),
        (SavedRow("77", "PENDING", "BeginTime"), "PENDING"),
        (SavedRow("77", "PENDING", "JobHeldUser"), "PENDING"),
        (SavedRow("77", "FAILED", restarts=2), "FAILED"),
        (SavedRow("77", "COMPLETING", restarts=1), "COMPLETING"),
    ],
)
def test_a_job_that_waits_after_a_start_was_requeued_and_a_new_one_was_not(row: SavedRow, word: str) -> None:
    assert state(row)[1] == word


def test_a_requeue_says_how_slurm_goes_on() -> None:
    (job,) = jobs_in([SavedRow("77", "PENDING", "BeginTime", restarts=1)])
    assert job.state.reason == "SLURM has already queued it again: PENDING, BeginTime"
    (job,) = jobs_in([SavedRow("77", "RUNNING", restarts=1)])
    assert job.state.reason == "SLURM has already started it again: RUNNING"
    (job,) = jobs_in([SavedRow("77", "REQUEUE_HOLD")])
    assert job.state.reason == "SLURM has already queued it again, and holds it: REQUEUE_HOLD"


@pytest.mark.parametrize(
    ("own", "step", "error_type"),
    [
        ("FAILED", "OUT_OF_MEMORY", "host_oom"),
        ("FAILED", "FAILED", "slurm_failure"),
        ("TIMEOUT", "OUT_OF_MEMORY", "slurm_failure"),
        ("COMPLETED", "OUT_OF_MEMORY", ""),
    ],
)
def test_a_step_that_was_killed_for_its_memory_explains_a_job_that_only_failed(
    own: str, step: str, error_type: str
) -> None:
    assert state(SavedRow("77", own), SavedRow("77", step, part="0")) == ("ended", own, error_type)


def test_a_step_of_an_earlier_start_explains_nothing() -> None:
    first = (SavedRow("77", "FAILED"), SavedRow("77", "OUT_OF_MEMORY", part="0"))
    assert state(*first, SavedRow("77", "FAILED"), SavedRow("77", "FAILED", part="0"))[2] == "slurm_failure"


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ((("batch", "FAILED"), ("0", "OUT_OF_MEMORY")), ("ended", "OUT_OF_MEMORY", "host_oom")),
        ((("extern", "COMPLETED"), ("0", "FAILED")), ("ended", "FAILED", "slurm_failure")),
        ((("batch", "RUNNING"), ("0", "FAILED")), ("running", "RUNNING", "")),
    ],
)
def test_of_steps_alone_the_most_telling_counts(
    parts: tuple[tuple[str, str], ...], expected: tuple[str, str, str]
) -> None:
    assert state(*(SavedRow("77", word, part=part) for part, word in parts)) == expected


def test_a_step_for_processes_that_come_by_ssh_tells_no_end() -> None:
    assert jobs_in([SavedRow("77", "COMPLETED", part="extern")]) == []


def test_a_component_tells_more_than_the_leader_that_only_failed() -> None:
    component = SavedRow("77", "NODE_FAIL", part="+1")
    assert state(SavedRow("77", "FAILED"), component)[1] == "NODE_FAIL"
    assert state(SavedRow("77", "FAILED"), SavedRow("77", "NODE_FAIL", part="+1.0"))[1] == "FAILED"


def test_jobs_stay_apart_and_a_task_has_both_its_names() -> None:
    jobs = jobs_in([SavedRow("77_0", "COMPLETED", raw="78"), SavedRow("77_1", "NODE_FAIL", raw="77")])
    assert [(job.names, job.state.word) for job in jobs] == [
        (("77_0", "78"), "COMPLETED"), (("77_1", "77"), "NODE_FAIL"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("word", "reason", "person"),
    [
        ("CANCELLED", "DependencyNeverSatisfied", ""),
        ("CANCELLED by 0", "DependencyNeverSatisfied", ""),
        ("CANCELLED", "AssocGrpGRESMinutes", ""),
        ("CANCELLED", "AssociationJobLimit", ""),
        ("CANCELLED", "QOSMaxWallDurationPerJobLimit", ""),
        ("CANCELLED by 1000", "QOSMaxJobsPerUserLimit", "uid 1000"),
        ("CANCELLED", "Priority", "somebody"),
        ("CANCELLED by root", "", "root"),
        ("CANCELLED by anna", "", "anna"),
        ("CANCELLED by 10+", "", "somebody"),
        ("CANCELLED", "", "somebody"),
    ],
)
def test_who_cancelled_and_that_a_limit_is_nobody(word: str, reason: str, person: str) -> None:
    assert job_state(word, reason, 0, None).by_person == person


def test_a_failure_without_a_code_has_none() -> None:
    assert job_state("FAILED", "Prolog", 0, None).exit_code is None
    assert job_state("FAILED", "", 0, 9).exit_code == 0
    assert job_state("COMPLETED", "", 0, None).exit_code == 0
