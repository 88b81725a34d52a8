"""Decide judges by the policies of the bundle that is activated, from that record on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from midwatch.agents.decide.decision import Rulebook
from midwatch.agents.decide.fold import DecideFold
from midwatch.agents.policies.base import Policy
from midwatch.agents.policies.loader import load_policy
from midwatch.agents.rulesets.content import Content, bundle, bundle_hash, content
from midwatch.streams.records import Activation, Decision, Forwarded, Incident, SpecEvent, Verdict, codec
from midwatch.streams.worker.fold import PARTITION, ContentMissing, Fields, Message

JOB = "local:ada/llm"
NEVER = replace(load_policy("verdict"), name="mine", clauses={}, description="")
ALWAYS = replace(load_policy("verdict"), name="mine", description="")


def _content(*policies: Policy) -> Content:
    record = bundle((), {}, policies, {"/p/mine.yaml": "mine"}, any_line=False)
    return content(bundle_hash(record), record)


class _Decide:
    """One partition of `incidents`."""

    def __init__(self, *contents: Content) -> None:
        book = Rulebook({"verdict": load_policy("verdict")}, lambda command: command, acting=True)
        self.contents = {each.hash: each for each in contents}
        self.fold = DecideFold(book, "decisions", "commands", self.contents)
        self.states: dict[bytes, Fields] = {PARTITION: {}, JOB.encode(): {}}
        self.offset = 0

    def take(self, record: object, key: str | None = JOB) -> list[Decision]:
        raw = None if key is None else key.encode()
        message = Message("incidents", 0, self.offset, 9, 9, raw, codec.encode(record))
        done = self.fold.apply(self.states, message)
        self.offset += 1
        for name, fields in done.changed.items():
            merged = {**self.states[name], **fields}
            self.states[name] = {k: v for k, v in merged.items() if v is not None}
        sent = [codec.decode(send.value or b"") for send in done.sends if send.topic == "decisions"]
        return [each for each in sent if isinstance(each, Decision)]

    def ended(self, attempt: int, policy: str) -> str:
        self.take(Forwarded(SpecEvent(JOB, "spec", policy, True, 1, "/ckpt")))
        verdict = Verdict("failed", mode="crash", error_type="nccl_timeout", transient=True)
        incident = Incident(
            f"i{attempt}", JOB, attempt, f"local:{attempt}:1", "settled", 1, verdict, words=("process",)
        )
        (decision,) = self.take(incident)
        return decision.action


@pytest.mark.parametrize("asked", ["mine", "/p/mine.yaml"])
def test_the_policy_that_a_job_names_is_that_of_the_bundle_in_force(asked: str) -> None:
    never, always = _content(NEVER), _content(ALWAYS)
    decide = _Decide(never, always)
    assert decide.ended(1, asked) == "hold", "nobody has it yet"
    decide.take(Activation(never.hash, 1), key=None)
    assert decide.ended(2, asked) == "stop"
    decide.take(Activation(always.hash, 2), key=None)
    assert decide.ended(3, asked) == "restart"


def test_an_own_policy_called_as_a_shipped_one_wins() -> None:
    own = _content(replace(NEVER, name="verdict"), NEVER)
    decide = _Decide(own)
    assert decide.ended(1, "verdict") == "restart"
    decide.take(Activation(own.hash, 1), key=None)
    assert decide.ended(2, "verdict") == "stop"


def test_a_bundle_that_is_not_at_hand_is_asked_for_before_anything_is_folded() -> None:
    own = _content(NEVER)
    decide = _Decide()
    with pytest.raises(ContentMissing) as caught:
        decide.take(Activation(own.hash, 1), key=None)
    assert caught.value.content == own.hash
    assert decide.states[PARTITION] == {}
    decide.contents[own.hash] = own
    decide.take(Activation(own.hash, 1), key=None)
    assert decide.states[PARTITION][b"bundle"] == own.hash.encode()
