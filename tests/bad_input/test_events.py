"""`events` and `incidents`, through the folds and the batch that the workers run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from bad_input.case import AT_MS, AT_S, JOB, OTHER, Case, Outcome, assert_refused, ids
from midwatch.agents.decide.decision import Rulebook
from midwatch.agents.decide.fold import DecideFold
from midwatch.agents.detect.fold import DetectFold
from midwatch.agents.policies.loader import load_policy
from midwatch.rules.detectors.limits import WatchLimits
from midwatch.streams.records import (
    Decision,
    Finding,
    Forwarded,
    Heartbeat,
    Hit,
    Hits,
    Incident,
    Line,
    Origin,
    Progress,
    SchedulerFact,
    SpecEvent,
    Verdict,
    codec,
)
from midwatch.streams.records import Outcome as CommandOutcome
from midwatch.streams.worker.fold import PARTITION, Fields, Fold, Message
from midwatch.streams.worker.tables.batch import OWN, Batch

PARTITIONS = 4
ORIGIN = Origin(JOB, "n0", 1, "local:1:1", "boot", "shipper")
BEAT = Heartbeat(ORIGIN, 7, AT_S, 100.0, 5.0, True, 0)
LINE = Line("CUDA error", "/logs/a.log", 4, 30, AT_S, "n0")
HIT = Hit("cuda", "cause", "torch", "cuda", "error", None, LINE, 40, "g")
HITS = Hits(ORIGIN, "bundle", (HIT,), ends={"g": 40}, logged_ms=AT_MS)
STEPS = Progress("/logs/a.log", "g", "step", "training", (5,), (60,), (5,), (AT_S,), ("2.0",))
ENDED = SchedulerFact(JOB, "local:1:1", "1", "running", "failed", True, exit_code=1)
INCIDENT = Incident(
    f"{JOB}#1.1", JOB, 1, "local:1:1", "settled", 1, Verdict("failed", "crash", "nccl", transient=True)
)


class Topic:
    """One partition of a stateful worker: the real fold in the real batch, state in a dict for Redis."""

    def __init__(self, topic: str, fold: Fold) -> None:
        self.topic, self.fold = topic, fold
        self.states: dict[bytes, Fields] = {PARTITION: {}, OWN: {}}
        self.offset = 0
        self.now_ms = AT_MS
        self.stopped = ""

    def take(self, value: Any, key: str | bytes | None = JOB, *, later_ms: int = 0) -> Outcome:
        body = value if isinstance(value, bytes) or value is None else codec.encode(value)
        name = key.encode() if isinstance(key, str) else key
        self.now_ms += later_ms
        message = Message(self.topic, 0, self.offset, self.now_ms, self.now_ms, name, body)
        batch = Batch(self.fold, dict(self.states), self.offset - 1, "dead")
        for missing in batch.missing(message):
            batch.states[missing] = {}
        if batch.apply(message):
            self.offset += 1
        self.stopped = batch.stopped
        self.states = {
            name: fields for name, fields in batch.states.items() if fields or name in (PARTITION, OWN)
        }
        outcome = Outcome().sort([send for _, send in batch.outgoing], "dead")
        outcome.counted = dict(Counter(batch.tally.refused))
        return outcome

    def told(self, outcome: Outcome) -> list[Any]:
        return [codec.decode(send.value or b"") for send in outcome.sent]

    def state(self, job: str) -> Mapping[bytes, bytes]:
        return self.states.get(job.encode(), {})


def decisions(topic: Topic, outcome: Outcome) -> list[Any]:
    """What decide decided, without what it passes on for the messages."""
    return [record for record in topic.told(outcome) if not isinstance(record, Forwarded)]


def owner(key: bytes) -> int:
    return 2 if key == b"local:eve/elsewhere" else 0


@pytest.fixture
def events() -> Topic:
    return Topic("events", DetectFold(WatchLimits(), "incidents", owner))


@pytest.fixture
def incidents() -> Topic:
    book = Rulebook({"verdict": load_policy("verdict")}, lambda command: command, acting=True)
    return Topic("incidents", DecideFold(book, "decisions", "commands"))


def changed(record: object, change: Any) -> bytes:
    """A record changed as JSON: what no encoder of ours would write."""
    told = json.loads(codec.encode(record))
    change(told)
    return json.dumps(told).encode()


def _set(record: object, *path: str | int, to: Any) -> bytes:
    def change(told: Any) -> None:
        for step in path[:-1]:
            told = told[step]
        told[path[-1]] = to

    return changed(record, change)


EVENTS = (
    Case("a tombstone", "a record without a value", value=None),
    Case("bytes that are no record", "not a record", value=b"\x00\xff"),
    Case("JSON of another make", "not a record", value=b"[1, 2]"),
    Case("a wrong type", "$.sequence", value=_set(BEAT, "sequence", to="seven")),
    Case("a sequence below nothing", "$.sequence", value=_set(BEAT, "sequence", to=-1)),
    Case("JSON nested 100,000 deep", "too deeply", value=b'{"record":"beat","v":1,"x":' + b"[" * 100_000),
    Case("NaN where a number is due", "not a record", value=codec.encode(BEAT).replace(b"100.0", b"NaN")),
    Case("a number too large for any float", "out of range",
         value=codec.encode(BEAT).replace(b"100.0", b"1e999")),
    Case("an offset of forty digits", "$.hits[0].end", value=_set(HITS, "hits", 0, "end", to=10**40)),
    Case("a negative line number", "number", value=_set(HITS, "hits", 0, "line", "number", to=-4)),
    Case(
        "columns of unequal length",
        "not of equal length",
        value=_set(replace(HITS, progress=(STEPS,)), "progress", 0, "numbers", to=[]),
    ),
    Case("a limit of silence below nothing", "$.limits", value=_set(
        SpecEvent(JOB, "h", "verdict", True, 1, "", {"training": 60.0}), "limits", "training", to=-60.0)),
    Case("a job whose name is none", "$.job", value=_set(ENDED, "job", to="../../etc"), key=b"../../etc"),
    Case(
        "another job's record under this job's key",
        f"a record of '{OTHER}' under the key of '{JOB}'",
        "misdirected",
        value=codec.encode(replace(BEAT, origin=replace(ORIGIN, job=OTHER))),
    ),
    Case(
        "a key of another partition",
        "does not belong to partition 0",
        "misdirected",
        value=codec.encode(replace(ENDED, job="local:eve/elsewhere")),
        key=b"local:eve/elsewhere",
    ),
    Case("a key that is no text", "not UTF-8", value=codec.encode(BEAT), key=b"\xff\xfe"),
    Case("no key", "without the key of its job", value=codec.encode(BEAT), key=b""),
    Case("the key of our own state of the partition", "under the key", "misdirected",
         value=codec.encode(BEAT), key=PARTITION),
    Case("the key of the shell's own state", "under the key", "misdirected",
         value=codec.encode(BEAT), key=OWN),
)  # fmt: skip


def _key(case: Case) -> bytes | None:
    return JOB.encode() if case.key is None else (case.key or None)


@pytest.mark.parametrize("case", EVENTS, ids=ids(EVENTS))
def test_on_events_it_is_set_aside_no_job_is_held_and_the_beat_behind_it_counts(
    events: Topic, case: Case
) -> None:
    events.take(BEAT)
    before = dict(events.state(JOB))
    refused = events.take(case.value, _key(case), later_ms=1)
    assert_refused(refused, case)
    assert refused.sent == []
    assert events.state(JOB) == before
    assert b"job" not in {**events.states[PARTITION], **events.states[OWN]}
    events.take(replace(BEAT, sequence=8, monotonic=105.0), later_ms=5000)
    assert events.state(JOB)[b"node:n0"] != before[b"node:n0"]


@pytest.mark.parametrize(
    ("value", "said"),
    [(_set(BEAT, "v", to=9), "of version 9"), (b'{"record":"dream","v":1}', "unknown kind 'dream'")],
    ids=["a newer version", "an unknown kind"],
)
def test_a_newer_record_on_events_stops_its_partition_and_is_never_skipped(
    events: Topic, value: bytes, said: str
) -> None:
    events.take(BEAT)
    outcome = events.take(value)
    assert said in events.stopped
    assert (outcome.letters, events.offset) == ([], 1)


def test_beats_that_go_backwards_count_nothing(events: Topic) -> None:
    events.take(replace(BEAT, sequence=10, monotonic=50.0))
    before = dict(events.state(JOB))
    for sequence, monotonic in ((9, 900.0), (10, 950.0), (0, 0.0)):
        outcome = events.take(replace(BEAT, sequence=sequence, monotonic=monotonic), later_ms=100)
        assert (outcome.letters, events.state(JOB)) == ([], before)
    events.take(replace(BEAT, sequence=11, monotonic=10.0), later_ms=100)
    node = json.loads(events.state(JOB)[b"node:n0"])
    assert node["pulse"]["silence"] == 0.0, "a monotonic clock that went back is no silence"


def test_numbers_that_are_none_in_a_loss_make_a_finding_and_no_crash(events: Topic) -> None:
    for number, loss in enumerate(("nan", "inf", "-inf", "1e999", "", "0x10", "\uff19", "--", "9" * 5000)):
        record = replace(
            HITS, hits=(), ends={"g": 100 + number},
            progress=(replace(STEPS, steps=(number,), ends=(100 + number,), losses=(loss,)),),
        )  # fmt: skip
        assert events.take(record, later_ms=10).letters == []
    assert json.loads(events.state(JOB)[b"job"])["step"] == 8


def test_ten_thousand_hits_of_one_job_end_nothing_and_touch_no_other(events: Topic) -> None:
    events.take(replace(BEAT, origin=replace(ORIGIN, job=OTHER)), OTHER)
    other = dict(events.state(OTHER))
    told: list[Any] = []
    for number in range(100):
        hits = tuple(
            replace(HIT, end=(number * 100 + n) * 10 + 9, line=replace(LINE, number=number * 100 + n))
            for n in range(100)
        )
        told += events.told(
            events.take(replace(HITS, hits=hits, ends={"g": number * 1000 + 999}), later_ms=1)
        )
    assert {record.job for record in told} == {JOB}
    assert [r.state for r in told if isinstance(r, Incident)] == ["suspected"]
    assert events.state(OTHER) == other
    assert len(events.state(JOB)[b"job"]) < 64 * 1024


def test_a_handler_that_fails_holds_its_job_says_so_once_and_no_other_job(events: Topic) -> None:
    events.take(BEAT)
    events.states[JOB.encode()] = {**events.state(JOB), b"job": b"{broken"}
    outcome = events.take(replace(BEAT, sequence=8), later_ms=10)
    (letter,) = outcome.letters
    assert letter.kind == "failed"
    assert outcome.counted == {"failed": 1}
    assert [r.kind for r in events.told(outcome) if isinstance(r, Finding)] == ["poisoned"]
    assert events.take(replace(BEAT, sequence=9), later_ms=10).sent == []
    assert events.take(replace(BEAT, origin=replace(ORIGIN, job=OTHER)), OTHER, later_ms=10).letters == []


INCIDENTS = (
    Case("a tombstone", "a record without a value", value=None, goes="set aside; the job is held, and told"),
    Case("bytes that are no record", "not a record", value=b"{", goes="set aside; the job is held, and told"),
    Case("a negative attempt", "$.attempt", value=_set(INCIDENT, "attempt", to=-1),
         goes="set aside; the job is held, and told"),
    Case("a time beyond any calendar", "$.opened_ms", value=_set(INCIDENT, "opened_ms", to=10**18),
         goes="set aside; the job is held, and told"),
)  # fmt: skip


@pytest.mark.parametrize("case", INCIDENTS, ids=ids(INCIDENTS))
def test_on_incidents_an_unreadable_record_holds_its_job_until_a_person_has_looked(
    incidents: Topic, case: Case
) -> None:
    refused = incidents.take(case.value)
    assert_refused(refused, case)
    (decision,) = decisions(incidents, refused)
    assert isinstance(decision, Decision)
    assert (decision.action, decision.job) == ("hold", JOB)
    assert "midwatch arm" in decision.reason
    assert "incidents/0/0" in decision.reason
    assert incidents.take(case.value).sent == [], "said once"
    (held,) = decisions(incidents, incidents.take(INCIDENT))
    assert held.action == "hold"
    (other,) = decisions(incidents, incidents.take(replace(INCIDENT, job=OTHER), OTHER))
    assert "could not be read" not in other.reason


MISDIRECTED = (
    Case("another job's incident under this job's key", f"a record of '{OTHER}'", "misdirected",
         value=codec.encode(replace(INCIDENT, job=OTHER)), goes="set aside; nobody is held"),
    Case("another job's outcome under this job's key", f"a record of '{OTHER}'", "misdirected",
         value=codec.encode(Forwarded(CommandOutcome(OTHER, "c", 1, "restart", "accepted", "ok"))),
         goes="set aside; nobody is held"),
    Case("the key of our own state of the partition", "not a record", value=b"{", key=PARTITION,
         goes="set aside; nobody is held"),
)  # fmt: skip


@pytest.mark.parametrize("case", MISDIRECTED, ids=ids(MISDIRECTED))
def test_on_incidents_what_is_not_this_jobs_holds_nobody(incidents: Topic, case: Case) -> None:
    refused = incidents.take(case.value, _key(case))
    assert_refused(refused, case)
    assert refused.sent == []
    assert set(incidents.states) <= {PARTITION, OWN}
    assert incidents.states[PARTITION] == {}
    (decision,) = decisions(incidents, incidents.take(INCIDENT))
    assert "could not be read" not in decision.reason
