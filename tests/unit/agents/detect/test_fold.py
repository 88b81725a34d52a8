"""Detect as a fold of bytes: small writes, timers of other jobs, poison that hurts one job alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from midwatch.agents.detect.fold import DetectFold
from midwatch.rules.detectors.limits import WatchLimits
from midwatch.streams.errors import MalformedRecord, NewerRecord
from midwatch.streams.records import Finding, Heartbeat, Incident, Origin, SchedulerFact, Tick, codec
from midwatch.streams.worker.fold import PARTITION, Applied, Fields, Message

FOLD = DetectFold(WatchLimits(), "incidents", lambda _: 0)
JOB = "local:ada/llm"


def _beat(job: str = JOB, *, sequence: int = 1, monotonic: float = 1.0, node: str = "n0") -> Heartbeat:
    return Heartbeat(Origin(job, node, 1, "local:1:1", "b", "s"), sequence, 1.0, monotonic, 5.0, True, 0)


class Partition:
    """A partition with its state, as the shell keeps it."""

    def __init__(self) -> None:
        self.states: dict[bytes, dict[bytes, bytes]] = {PARTITION: {}}
        self.offset = 0
        self.last: Applied = Applied()

    def take(self, value: object, now_ms: int, key: str | None = JOB) -> list[object]:
        body = value if isinstance(value, bytes) else codec.encode(value)
        message = Message("events", 0, self.offset, now_ms, now_ms, key.encode() if key else None, body)
        self.offset += 1
        wanted = FOLD.keys(self.states[PARTITION], message)
        given: dict[bytes, Fields] = {k: self.states.get(k, {}) for k in (PARTITION, *wanted)}
        try:
            applied = FOLD.apply(given, message)
        except NewerRecord:
            raise
        except Exception as error:
            applied = FOLD.on_poison(given, message, error)
        self._write(applied)
        return [codec.decode(send.value or b"") for send in applied.sends]

    def _write(self, applied: Applied) -> None:
        self.last = applied
        for name, fields in applied.changed.items():
            state = self.states.setdefault(name, {})
            for field, blob in fields.items():
                if blob is None:
                    state.pop(field, None)
                else:
                    state[field] = blob


def test_a_beat_of_one_node_writes_that_node_alone() -> None:
    partition = Partition()
    partition.take(_beat(), 1000)
    partition.take(_beat(sequence=2, monotonic=6.0), 6000)
    assert set(partition.last.changed[JOB.encode()]) <= {b"node:n0", b"job"}
    partition.take(replace(_beat(sequence=2), sequence=2), 6001)
    assert b"node:n0" not in partition.last.changed.get(JOB.encode(), {})


def test_a_silent_node_is_noticed_by_another_jobs_record() -> None:
    partition = Partition()
    partition.take(_beat(), 1000)
    assert FOLD.next_deadline(partition.states[PARTITION]) == 16_001
    other = "local:bob/gpt"
    told = partition.take(_beat(other), 20_000, other)
    kinds = {(r.job, r.kind, r.at_ms) for r in told if isinstance(r, Finding)}
    assert (JOB, "node_silent:n0", 16_001) in kinds


def test_a_tick_fires_timers_at_their_due_time() -> None:
    partition = Partition()
    partition.take(_beat(), 1000)
    told = partition.take(codec.encode(Tick(0)), 50_000, None)
    assert {r.at_ms for r in told if isinstance(r, Finding)} == {16_001, 31_001}
    daily = 1000 + int(FOLD.limits.carry_every * 1000)
    assert FOLD.next_deadline(partition.states[PARTITION]) == daily


@pytest.mark.parametrize("value", [b"", b"{", b"[]", b"\x00\xff", b'{"record":"beat","v":1}'])
def test_bytes_that_are_no_record_change_no_job(value: bytes) -> None:
    partition = Partition()
    partition.take(_beat(), 1000)
    before = dict(partition.states[JOB.encode()])
    assert partition.take(value, 2000) == []
    assert partition.states[JOB.encode()] == before


def test_a_record_under_another_jobs_key_is_refused() -> None:
    message = Message("events", 0, 0, 1, 1, b"local:eve/x", codec.encode(_beat()))
    with pytest.raises(MalformedRecord, match="under the key"):
        FOLD.apply({PARTITION: {}, b"local:eve/x": {}}, message)


def test_a_key_of_another_partition_is_refused() -> None:
    fold = DetectFold(WatchLimits(), "incidents", lambda _: 3)
    message = Message("events", 0, 0, 1, 1, JOB.encode(), codec.encode(_beat()))
    with pytest.raises(MalformedRecord, match="partition 0"):
        fold.apply({PARTITION: {}, JOB.encode(): {}}, message)


def test_a_newer_record_is_left_to_a_newer_worker() -> None:
    value = codec.encode(_beat()).replace(b'"v":1', b'"v":99')
    with pytest.raises(NewerRecord):
        Partition().take(value, 1000)


def test_state_that_cannot_be_read_holds_its_job_and_no_other() -> None:
    partition = Partition()
    partition.take(_beat(), 1000)
    partition.states[JOB.encode()][b"job"] = b"{broken"
    told = partition.take(_beat(sequence=2, monotonic=6.0), 6000)
    assert [r.kind for r in told if isinstance(r, Finding)] == ["poisoned"]
    assert partition.take(_beat(sequence=3, monotonic=11.0), 11_000) == []
    other = "local:bob/gpt"
    partition.take(_beat(other), 7000, other)
    assert other.encode() in partition.states
    assert JOB.encode() not in partition.last.changed


def test_the_same_records_give_the_same_bytes() -> None:
    def run() -> tuple[dict[bytes, dict[bytes, bytes]], list[object]]:
        partition, told = Partition(), list[object]()
        told += partition.take(_beat(), 1000)
        ended = SchedulerFact(JOB, "local:1:1", "1", "running", "failed", True, exit_code=1)
        told += partition.take(ended, 2000)
        told += partition.take(codec.encode(Tick(0)), 500_000, None)
        return partition.states, told

    first, second = run(), run()
    assert first == second
    assert [r.state for r in first[1] if isinstance(r, Incident)] == ["ended", "settled"]
