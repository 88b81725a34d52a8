"""Any field of any record may hold anything: what is taken can be folded, and what cannot be folded is
refused as what it is, never as a failure of our own code that would hold the job."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from bad_input.case import AT_MS, AT_S, JOB
from bad_input.test_events import BEAT, ENDED, HITS, INCIDENT, ORIGIN, STEPS, Topic, owner
from midwatch.agents.decide.decision import Rulebook
from midwatch.agents.decide.fold import DecideFold
from midwatch.agents.detect.fold import DetectFold
from midwatch.agents.policies.loader import load_policy
from midwatch.rules.detectors.limits import WatchLimits
from midwatch.streams.records import (
    Finding,
    Forwarded,
    HitCount,
    Outcome,
    PersonAct,
    Snapshot,
    SpecEvent,
    codec,
)
from midwatch.streams.worker.fold import PARTITION

SPEC = SpecEvent(JOB, "hash", "verdict", True, 1, "/ckpt", {"training": 60.0}, 3, "local:1:1")
OUTCOME = Outcome(JOB, "c", 1, "restart", "done", "ok", "1", "2", "local:2:2", 40)
FOUND = Finding(JOB, 1, "loss_spike", True, AT_MS, "a spike")
EVENTS = (
    replace(HITS, progress=(STEPS,), counts=(HitCount("cuda", None, 3, 1, 9, "/logs/a.log"),)),
    replace(BEAT, sequence=8, monotonic=105.0, samples={"gpu": 1.0}),
    ENDED,
    SPEC,
    OUTCOME,
    PersonAct(JOB, "arm", "ada", AT_S, {"why": "so"}),
    Snapshot(
        JOB, 1, {"local:1:1": 1}, SPEC, 40, "local:1:1", incident=INCIDENT, findings={"loss_spike": FOUND}
    ),
)
INCIDENTS = (
    INCIDENT,
    replace(INCIDENT, scheduler=ENDED, spec=SPEC),
    FOUND,
    Forwarded(OUTCOME),
    Forwarded(SPEC),
)
FOUR_YEARS_MS = 4 * 366 * 86_400_000
ODD: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2**53, 2**53 + 1, 2**63, 10**40, -(10**40), 0.5, -0.5, 1e300, -1e300, 5e-324,
    "", "x", "\x00", "\x1b[2J", "\u202e", "x" * 70_000, "local:ada/llm\n", [], [1], {}, {"a": 1}, [[[[]]]],
)  # fmt: skip


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, (*path, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _leaves(inner, (*path, index))


def _plain(record: object) -> Any:
    return json.loads(codec.encode(record))


def _spoilt(record: object) -> Iterator[tuple[str, bytes]]:
    """The record with each of its fields, at any depth, holding each odd thing in turn."""
    plain = json.loads(codec.encode(record))
    for path in [path for path in _leaves(plain) if path[0] not in ("record", "v")]:
        for odd in ODD:
            told = copy.deepcopy(plain)
            here = told
            for step in path[:-1]:
                here = here[step]
            here[path[-1]] = odd
            yield f"{path} = {str(odd)[:60]!r}", json.dumps(told).encode()


def _named(record: object) -> str:
    return type(getattr(record, "record", record)).__name__


@pytest.mark.parametrize("record", EVENTS, ids=_named)
def test_no_field_of_a_record_of_events_can_hold_its_job(record: object) -> None:
    for what, value in _spoilt(record):
        events = Topic("events", DetectFold(WatchLimits(), "incidents", owner))
        events.take(BEAT)
        outcome = events.take(value, later_ms=10)
        assert [letter.reason for letter in outcome.letters if letter.kind == "failed"] == [], what
        for told in events.told(outcome):
            assert codec.out_of_bounds(getattr(told, "record", told)) == "", what
        deadline = events.fold.next_deadline(events.states[PARTITION])
        assert deadline is None or abs(deadline - events.now_ms) < FOUR_YEARS_MS, what
        later = events.take(replace(BEAT, origin=replace(ORIGIN, shipper="next")), later_ms=900_000)
        assert later.letters == [], what


@pytest.mark.parametrize("record", INCIDENTS, ids=_named)
def test_no_field_of_a_record_of_incidents_makes_decide_fail(record: object) -> None:
    book = Rulebook({"verdict": load_policy("verdict")}, lambda command: command, acting=True)
    for what, value in _spoilt(record):
        incidents = Topic("incidents", DecideFold(book, "decisions", "commands"))
        outcome = incidents.take(value, later_ms=10)
        assert [letter.reason for letter in outcome.letters if letter.kind == "failed"] == [], what
        for told in incidents.told(outcome):
            assert codec.out_of_bounds(getattr(told, "record", told)) == "", what
        assert incidents.take(INCIDENT, later_ms=10).letters == [], what
