"""Detect at the beginning of a log, of one that was cut, and of one with a newer record in it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from midwatch.agents.detect.fold import DetectFold
from midwatch.rules.detectors.limits import WatchLimits
from midwatch.streams.records import (
    Heartbeat,
    Incident,
    Origin,
    SchedulerFact,
    Snapshot,
    SpecEvent,
    Tick,
    codec,
)
from midwatch.streams.worker.fold import PARTITION, Fields, Message, Send
from midwatch.streams.worker.tables.batch import OWN, Batch

FOLD = DetectFold(WatchLimits(), "incidents", lambda _: 3)
JOB = "local:ada/llm"
FIRST = "local:1:1"
DAY_MS = 86_400_000


class Log:
    """One partition of `events`, folded as the worker folds it, but in memory."""

    def __init__(self, fold: DetectFold = FOLD) -> None:
        self.fold = fold
        self.states: dict[bytes, Fields] = {PARTITION: {}, OWN: {}}
        self.sent: list[Send] = []
        self.stopped = ""

    def take(self, record: object, offset: int, now_ms: int, job: str | None = JOB) -> None:
        value = record if isinstance(record, bytes) else codec.encode(record)
        batch = Batch(self.fold, self.states, offset - 1, "dead")
        message = Message("events", 3, offset, now_ms, now_ms, job.encode() if job else None, value)
        for key in batch.missing(message):
            batch.states[key] = {}
        batch.apply(message)
        self.stopped = batch.stopped
        self.sent += [send for _, send in batch.outgoing]

    def told(self, kind: type) -> list[object]:
        return [r for s in self.sent if isinstance(r := codec.decode(s.value or b""), kind)]

    def cut(self) -> list[bool]:
        return [r.cut for r in self.told(Incident) if isinstance(r, Incident)]


def _running(job: str = JOB) -> SchedulerFact:
    return SchedulerFact(job, FIRST, "1", "", "running", False)


def _failed(job: str = JOB) -> SchedulerFact:
    return replace(_running(job), old="running", new="failed", ended=True, exit_code=1)


def test_a_carry_goes_into_the_jobs_own_partition() -> None:
    log = Log()
    log.take(_running(), 0, 1000)
    (snapshot,) = [s for s in log.sent if isinstance(codec.decode(s.value or b""), Snapshot)]
    assert (snapshot.topic, snapshot.partition, snapshot.key) == ("events", 3, JOB.encode())


def test_a_log_that_was_never_cut_knows_every_job_from_its_start() -> None:
    log = Log()
    log.take(b"{", 0, 1000)  # even if its very first record is no record
    log.take(_running(), 1, 2000)
    log.take(_failed(), 2, 3000)
    assert log.cut() == [False]


def test_a_job_first_seen_where_the_log_was_cut_may_be_older() -> None:
    log = Log()
    log.take(_running(), 5000, 1000)
    log.take(_failed(), 5001, 2000)
    assert log.cut() == [True]
    assert log.told(Snapshot) == []


def test_a_job_first_seen_long_after_the_cut_is_new_for_it_would_have_written_a_carry() -> None:
    log = Log()
    log.take(Tick(0), 5000, 1000, None)
    log.take(_running(), 5001, 1000 + 3 * DAY_MS)
    log.take(_failed(), 5002, 1000 + 3 * DAY_MS)
    assert log.cut() == [False]


def test_the_day_of_a_live_job_is_a_timer_that_a_tick_fires() -> None:
    log = Log()
    log.take(_running(), 0, 1000)
    assert log.fold.next_deadline(log.states[PARTITION]) is not None
    log.take(Tick(0), 1, 1000 + DAY_MS, None)
    assert len(log.told(Snapshot)) == 2


def _newer(record: object) -> bytes:
    return codec.encode(record).replace(b'"v":1', b'"v":2')


@pytest.mark.parametrize(
    "record",
    [
        _running(),
        Heartbeat(Origin(JOB, "n0", 1, FIRST, "b", "s"), 1, 1.0, 1.0, 5.0, True, 0),
        SpecEvent(JOB, "hash", "verdict", True, 1, "/ckpt"),
    ],
    ids=lambda record: type(record).__name__,
)
def test_a_newer_record_stops_the_partition_before_it_and_says_so(record: object) -> None:
    log = Log()
    log.take(_running(), 0, 1000)
    before = dict(log.states)
    log.take(_newer(record), 1, 2000)
    assert "version 2" in log.stopped
    assert "upgrade this worker" in log.stopped
    assert {k: v for k, v in log.states.items() if k != OWN} == {k: v for k, v in before.items() if k != OWN}


def test_after_the_upgrade_the_partition_goes_on_where_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The record that stopped the older worker is folded by the newer one, whose state is the older one's."""
    log = Log()
    log.take(_running(), 0, 1000)
    log.take(_newer(_failed()), 1, 2000)
    assert log.stopped
    monkeypatch.setattr(codec, "VERSION", 2)
    log.take(_newer(_failed()), 1, 2000)
    assert not log.stopped
    assert [i.state for i in log.told(Incident) if isinstance(i, Incident)] == ["ended"]


def test_a_kind_of_record_that_nobody_knows_yet_stops_the_partition_too() -> None:
    log = Log()
    log.take(b'{"record":"moon","v":1}', 0, 1000)
    assert "unknown kind 'moon'" in log.stopped
