"""Records of `decisions` for the tests, and a fold of one partition that keeps what it sends."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from midwatch.agents.messages.alarms import Pace
from midwatch.agents.messages.fold import MessagesFold, notice_of
from midwatch.agents.messages.notice import Notice
from midwatch.agents.messages.routing import Route
from midwatch.streams.records import (
    Decision,
    Finding,
    Forwarded,
    Incident,
    Outcome,
    SpecEvent,
    Tick,
    Verdict,
    codec,
)
from midwatch.streams.worker.fold import PARTITION, Fields, Message

JOB = "local:ada/llm"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."


def incident(attempt: int = 1, **verdict: Any) -> Forwarded:
    given: dict[str, Any] = {
        "mode": "crash",
        "error_type": "cuda_oom",
        "root_line": OOM,
        "root_file": "/logs/rank_3.log",
        "root_line_number": 12,
        "node": "n7",
        "rank": 3,
        "step": 4502,
    }
    made = Verdict("failed", **(given | verdict))
    silence = 600.0 if made.mode == "stall" else None
    return Forwarded(
        Incident(f"i{attempt}", JOB, attempt, f"local:{attempt}:1", "settled", 1, made, silence=silence)
    )


def decision(attempt: int = 1, action: Any = "restart", command: str = "c1", **fields: Any) -> Decision:
    number = {"restart_number": 1, "restart_limit": 3} if action == "restart" else {}
    made = Decision(
        JOB, attempt, f"i{attempt}", 1, action, "verdict", "it is transient", 1, True, command=command
    )
    return replace(made, **(number | fields))


def finding(kind: str = "loss_spike", *, open: bool = True, attempt: int = 1, **fields: Any) -> Forwarded:  # noqa: A002 (the record's word)
    detail = fields.pop("detail", "the loss is 5.2 at step 300 (/logs/rank_0.log:9); lately it was 1.9")
    return Forwarded(Finding(JOB, attempt, kind, open, 1, detail, **fields))


def done(attempt: int = 1) -> Forwarded:
    outcome = Outcome(
        JOB, "c1", attempt, "restart", "done", "", "17", "18", "local:2:1", 4500, checkpoint="/ckpt/step_4500"
    )
    return Forwarded(outcome)


def spec(name: str = "spec", **limits: float) -> Forwarded:
    return Forwarded(SpecEvent(JOB, name, "verdict", True, 1, "/ckpt", limits))


@dataclass
class Partition:
    """`take` folds a record at a time in seconds and returns the notices, one for each channel."""

    routes: tuple[Route, ...] = (Route("slack"),)
    pace: Pace = field(default_factory=lambda: Pace(10_000, 3_600_000))
    states: dict[bytes, Fields] = field(default_factory=lambda: {PARTITION: {}})
    offset: int = 0
    channels: list[str] = field(default_factory=list)
    deadlines: list[int | None] = field(default_factory=list)

    def take(self, record: object | None, at: float) -> list[Notice]:
        fold = MessagesFold(self.routes, self.pace)
        key = None if record is None else JOB.encode()
        value = codec.encode(Tick(due_ms=0) if record is None else record)
        now = int(at * 1000)
        message = Message("decisions", 0, self.offset, now, now, key, value)
        needed = fold.keys(self.states[PARTITION], message)
        view = {name: self.states.get(name, {}) for name in (PARTITION, *needed)}
        applied = fold.apply(view, message)
        assert fold.apply(view, message) == applied, "a fold that is repeated gives the same"
        for name, fields in applied.changed.items():
            merged = {**self.states.get(name, {}), **fields}
            self.states[name] = {k: v for k, v in merged.items() if v is not None}
        self.offset += 1
        self.channels = [send.topic for send in applied.sends]
        self.deadlines.append(fold.next_deadline(self.states[PARTITION]))
        return [notice_of(send) for send in applied.sends]
