"""Who runs as what, by `events` alone."""

from __future__ import annotations

from midwatch.agents.watcher.census import Census
from midwatch.streams.records import (
    Heartbeat,
    Hits,
    Origin,
    Outcome,
    SchedulerFact,
    Snapshot,
    SpecEvent,
    Tick,
)
from midwatch.streams.records.codec import encode

JOB, A, B = "local:ann/r", "local:1:2", "local:3:4"


def origin(incarnation: str) -> Origin:
    return Origin(JOB, "n0", 1, incarnation, "boot", "shipper")


def beat(incarnation: str, alive: bool | None) -> Heartbeat:
    return Heartbeat(origin(incarnation), 1, 1.0, 1.0, 5.0, at_end=True, backlog=0, alive=alive)


def census(*records: object) -> Census:
    made = Census()
    for at, record in enumerate(records, 1):
        made.apply(encode(record), float(at))
    return made


def test_each_kind_of_record_tells_of_a_start_in_its_order() -> None:
    fact = SchedulerFact(JOB, "local:5:6", "5", "", "RUNNING", ended=False)
    done = Outcome(JOB, "c", 1, "restart", "done", "", new_incarnation=B)
    made = census(Hits(origin(A), "bundle"), done, beat("local:4:5", None), fact, Tick(1))
    assert made.incarnations(JOB) == (A, B, "local:4:5", "local:5:6")
    assert made.incarnations("local:ann/unknown") == ()


def test_an_order_is_open_from_its_acceptance_to_its_end() -> None:
    first, other = (Outcome(JOB, name, 1, "restart", "accepted", "") for name in ("c1", "c2"))
    done = Outcome(JOB, "c1", 1, "restart", "done", "", new_incarnation=B)
    assert census(first, other).accepted == {"c1": first, "c2": other}
    assert census(first, other, done).accepted == {"c2": other}
    assert census(Outcome(JOB, "c3", 1, "restart", "refused", "")).accepted == {}


def test_a_spec_without_a_start_tells_of_none() -> None:
    spec = SpecEvent(JOB, "hash", "verdict", True, 1, "")
    assert census(spec).incarnations(JOB) == ()


def test_a_carry_keeps_the_order_of_the_attempts() -> None:
    carry = Snapshot(JOB, 2, {B: 2, A: 1}, None, None)
    assert census(carry).incarnations(JOB) == (A, B)


def test_the_last_beat_of_a_live_process_is_kept() -> None:
    (start,) = census(beat(A, True), beat(A, False), beat(A, None)).starts("local")
    assert start.alive_at == 1.0


def test_an_end_stays_an_end() -> None:
    over = SchedulerFact(JOB, A, "1", "RUNNING", "FAILED", ended=True)
    late = SchedulerFact(JOB, A, "1", "", "RUNNING", ended=False)
    (start,) = census(over, late).starts("local")
    assert start.ended


def test_what_cannot_be_read_is_left_to_detect() -> None:
    made = Census()
    made.apply(b"{", 1.0)
    made.apply(b'{"record":"from_the_future","v":9,"job":"x"}', 1.0)
    assert made.jobs == {}


def test_only_starts_of_the_scheduler_asked_for() -> None:
    made = census(beat(A, True), beat("slurm:9:0", True))
    assert [start.incarnation for start in made.starts("slurm")] == ["slurm:9:0"]
