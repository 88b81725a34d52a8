"""What decide forwards to the messages, before the decision about it."""

from __future__ import annotations

import pytest

from midwatch.agents.decide.decision import Rulebook
from midwatch.agents.decide.fold import DecideFold
from midwatch.agents.policies.loader import load_policy
from midwatch.agents.query.timeline import Timed, timeline
from midwatch.streams.records import (
    Finding,
    Forwarded,
    Incident,
    Outcome,
    PersonAct,
    SpecEvent,
    Tick,
    Verdict,
    codec,
)
from midwatch.streams.worker.fold import PARTITION, Fields, Message

JOB = "local:ada/llm"
VERDICT = Verdict("failed", mode="crash", error_type="nccl_timeout", transient=True)
SETTLED = Incident("i1", JOB, 1, "local:1:1", "settled", 1, VERDICT, words=("process",))
SPIKE = Finding(JOB, 1, "loss_spike", True, 9, "the loss is 9")


def _sent(record: object) -> list[object]:
    """What decide sends to `decisions` for one record."""
    book = Rulebook({"verdict": load_policy("verdict")}, lambda command: command, acting=True)
    fold = DecideFold(book, "decisions", "commands")
    key = None if isinstance(record, Tick) else JOB.encode()
    message = Message("incidents", 0, 0, 9, 9, key, codec.encode(record))
    states: dict[bytes, Fields] = {PARTITION: {}, JOB.encode(): {}}
    return [codec.decode(s.value or b"") for s in fold.apply(states, message).sends if s.topic == "decisions"]


@pytest.mark.parametrize("record", [SETTLED, SPIKE], ids=["incident", "finding"])
def test_what_is_decided_about_stands_before_its_decision(record: Incident | Finding) -> None:
    forwarded, decision = _sent(record)
    assert forwarded == Forwarded(record)
    assert type(decision).__name__ == "Decision"


@pytest.mark.parametrize(
    "record",
    [
        Outcome(JOB, "c1", 1, "restart", "done", ""),
        PersonAct(JOB, "arm", "ada", 1.0),
        SpecEvent(JOB, "spec", "verdict", True, 1, "/ckpt"),
    ],
    ids=["outcome", "act", "spec"],
)
def test_what_detect_passed_on_is_passed_on(record: Outcome | PersonAct | SpecEvent) -> None:
    assert _sent(Forwarded(record)) == [Forwarded(record)]


def test_nothing_is_forwarded_that_people_need_not_hear_of() -> None:
    suspected = Incident("i1", JOB, 1, "local:1:1", "suspected", 1, VERDICT)
    assert [_sent(record) for record in (suspected, Tick(1))] == [[], []]


def test_a_timeline_shows_once_what_stands_in_both_topics() -> None:
    both = [Timed(9, SETTLED), Timed(10, Forwarded(SETTLED)), Timed(11, SPIKE), Timed(12, Forwarded(SPIKE))]
    assert [step.record for step in timeline(JOB, both).steps] == [SETTLED, SPIKE]
