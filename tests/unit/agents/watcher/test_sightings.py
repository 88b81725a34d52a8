"""From looks at a scheduler to facts: changes once, absence only when proven, and whose cancel it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from midwatch.agents.schedulers.base import SchedulerJob, StartState
from midwatch.agents.watcher.census import JobStart
from midwatch.agents.watcher.sightings import (
    CancellationNote,
    SchedulerSweep,
    SweepResult,
    WatcherMemory,
    facts,
    questions,
)

JOB = "slurm:ann/r"
A, B = "slurm:12:0", "slurm:12:1"
RUNNING = StartState("running", "RUNNING")
FAILED = StartState("ended", "FAILED", "crash", "slurm_failure", 3)
CANCELLED = StartState("ended", "CANCELLED", "ended", "cancelled", by_person="somebody")
ABSENT = StartState("absent")
UNKNOWN = StartState("unknown")


def shown(incarnation: str, state: StartState, key: str = "") -> SchedulerJob:
    return SchedulerJob(incarnation.split(":")[1], incarnation, state, key)


def look(
    at: float, *jobs: SchedulerJob, answers: Mapping[str, StartState] | None = None, boot: str = "b1"
) -> SchedulerSweep:
    return SchedulerSweep("slurm", at, boot, {job.incarnation: job for job in jobs}, answers or {})


def fold(
    looks: Sequence[SchedulerSweep],
    starts: Sequence[JobStart],
    *,
    keys: Mapping[str, str] | None = None,
    cancellations: Mapping[str, CancellationNote] | None = None,
) -> list[tuple[str, str]]:
    watched, told = WatcherMemory(), []
    for one in looks:
        seen: SweepResult = facts(
            watched, one, starts, jobs_by_key=keys or {}, cancellations=cancellations or {}
        )
        watched = seen.watched
        told += [(f.old, f.new) for f in seen.facts]
    return told


@pytest.mark.capability("S001-39")
def test_a_change_is_told_once() -> None:
    looks = [look(1, shown(A, RUNNING)), look(2, shown(A, RUNNING)), look(3, shown(A, FAILED))]
    assert fold([*looks, look(4, shown(A, FAILED))], [JobStart(JOB, A)]) == [
        ("", "RUNNING"),
        ("RUNNING", "FAILED"),
    ]


@pytest.mark.capability("S001-34", "S001-39")
def test_a_job_that_waited_and_runs_is_told_to_have_started() -> None:
    waits = StartState("queued", "PENDING")
    told = fold([look(1, shown(A, waits)), look(2, shown(A, RUNNING))], [JobStart(JOB, A)])
    assert told == [("", "PENDING"), ("PENDING", "RUNNING")]


def test_a_watcher_that_starts_anew_does_not_repeat_what_events_know() -> None:
    assert fold([look(1, shown(A, RUNNING))], [JobStart(JOB, A, "RUNNING")]) == []


def test_the_end_carries_code_and_mode() -> None:
    (fact,) = facts(
        WatcherMemory(), look(1, shown(A, FAILED)), [JobStart(JOB, A)], jobs_by_key={}, cancellations={}
    ).facts
    assert (fact.job, fact.native_id, fact.ended, fact.mode, fact.exit_code) == (JOB, "12", True, "crash", 3)


def test_missing_twice_ten_seconds_apart_under_one_boot_is_an_end() -> None:
    gone = [look(at, answers={A: ABSENT}) for at in (1, 6, 10.9)]
    assert fold(gone, [JobStart(JOB, A, "RUNNING")]) == []
    assert fold([*gone, look(11, answers={A: ABSENT})], [JobStart(JOB, A, "RUNNING")]) == [
        ("RUNNING", "ABSENT")
    ]


def test_a_restart_of_the_scheduler_begins_the_wait_again() -> None:
    looks = [look(1, answers={A: ABSENT}), look(12, answers={A: ABSENT}, boot="b2")]
    assert fold(looks, [JobStart(JOB, A, "RUNNING")]) == []


def test_a_beat_of_a_live_process_outweighs_absence() -> None:
    looks = [look(1, answers={A: ABSENT}), look(12, answers={A: ABSENT})]
    assert fold(looks, [JobStart(JOB, A, "RUNNING", alive_at=5)]) == []


def test_an_answer_that_fails_is_no_absence_and_does_not_forget_one() -> None:
    first, last = look(1, answers={A: ABSENT}), look(12, answers={A: ABSENT})
    assert fold([look(1, answers={A: UNKNOWN}), last], [JobStart(JOB, A, "RUNNING")]) == []
    assert fold([first, look(6, answers={A: UNKNOWN}), last], [JobStart(JOB, A, "RUNNING")]) == [
        ("RUNNING", "ABSENT")
    ]


def test_a_job_that_comes_back_was_not_absent() -> None:
    looks = [look(1, answers={A: ABSENT}), look(5, shown(A, RUNNING)), look(12, answers={A: ABSENT})]
    assert fold(looks, [JobStart(JOB, A, "RUNNING")]) == []


def test_accounting_knows_what_the_queue_has_forgotten() -> None:
    assert fold([look(1, answers={A: FAILED})], [JobStart(JOB, A, "RUNNING")]) == [("RUNNING", "FAILED")]


def test_a_requeue_ends_one_start_and_is_another() -> None:
    again = StartState("ended", "REQUEUED", "ended")
    told = fold([look(1, shown(B, RUNNING), answers={A: again})], [JobStart(JOB, A, "RUNNING")])
    assert told == [("RUNNING", "REQUEUED"), ("", "RUNNING")], "the end comes first"


def test_a_start_of_ours_is_known_by_its_key_before_it_says_a_word() -> None:
    new = shown("slurm:13:0", RUNNING, "k1")
    assert fold([look(1, new)], [], keys={"k1": JOB}) == [("", "RUNNING")]
    assert fold([look(1, new)], []) == [], "somebody else's job is nobody's"


def test_an_end_is_never_taken_back() -> None:
    assert fold([look(1, shown(A, RUNNING))], [JobStart(JOB, A, "ABSENT", ended=True)]) == []


@pytest.mark.parametrize(
    ("cancellation", "person", "error_type"),
    [
        (None, "somebody", "cancelled"),
        (CancellationNote(""), "", ""),
        (CancellationNote("ann"), "ann", "cancelled"),
    ],
)
def test_whose_cancel_it_was(cancellation: CancellationNote | None, person: str, error_type: str) -> None:
    cancellations = {A: cancellation} if cancellation else {}
    (fact,) = facts(
        WatcherMemory(),
        look(1, shown(A, CANCELLED)),
        [JobStart(JOB, A)],
        jobs_by_key={},
        cancellations=cancellations,
    ).facts
    assert (fact.by_person, fact.error_type, fact.ended) == (person, error_type, True)


def test_who_cancelled_and_where_the_lost_are_is_asked_once() -> None:
    jobs = {A: shown(A, CANCELLED)}
    starts = [
        JobStart(JOB, A, "RUNNING"),
        JobStart(JOB, "slurm:9:0", "RUNNING"),
        JobStart(JOB, "slurm:8:0", ended=True),
    ]
    assert questions(WatcherMemory(), jobs, starts) == (A, "slurm:9:0")
    assert questions(WatcherMemory({A: "CANCELLED"}), jobs, starts) == ("slurm:9:0",)


def test_nobody_asks_who_cancelled_the_jobs_of_others() -> None:
    others = {f"slurm:{n}:0": shown(f"slurm:{n}:0", CANCELLED) for n in range(100, 1100)}
    twin = shown("slurm:13:0", CANCELLED, "k1")
    jobs = {**others, twin.incarnation: twin, A: shown(A, CANCELLED)}
    assert questions(WatcherMemory(), jobs, [JobStart(JOB, A, "RUNNING")]) == (A,)


def test_accounting_tells_who_cancelled() -> None:
    answer = StartState("ended", "CANCELLED", "ended", "cancelled", by_person="ann")
    one = look(1, shown(A, CANCELLED), answers={A: answer})
    (fact,) = facts(WatcherMemory(), one, [JobStart(JOB, A)], jobs_by_key={}, cancellations={}).facts
    assert fact.by_person == "ann"


def test_a_failed_question_leaves_what_the_queue_shows() -> None:
    one = look(1, shown(A, CANCELLED), answers={A: UNKNOWN})
    assert fold([one], [JobStart(JOB, A, "RUNNING")]) == [("RUNNING", "CANCELLED")]


def test_a_held_job_of_ours_and_a_twin_that_never_ran_are_no_starts_of_the_job() -> None:
    held, keys = StartState("held", "PENDING"), {"k1": JOB}
    twin = look(2, shown("slurm:13:0", CANCELLED, "k1"))
    assert fold([look(1, shown("slurm:13:0", held, "k1")), twin], [], keys=keys) == []
    let_go = look(2, shown("slurm:13:0", StartState("queued", "PENDING"), "k1"))
    assert fold([look(1, shown("slurm:13:0", held, "k1")), let_go], [], keys=keys) == [("", "PENDING")]


def test_a_persons_own_held_job_is_told() -> None:
    assert fold([look(1, shown(A, StartState("held", "PENDING")))], [JobStart(JOB, A)]) == [("", "PENDING")]


def test_a_job_that_ended_by_itself_before_we_ended_it_keeps_its_own_end() -> None:
    (fact,) = facts(
        WatcherMemory(),
        look(1, shown(A, FAILED)),
        [JobStart(JOB, A)],
        jobs_by_key={},
        cancellations={A: CancellationNote("")},
    ).facts
    assert (fact.mode, fact.exit_code, fact.error_type) == ("crash", 3, "slurm_failure")
