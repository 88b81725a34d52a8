"""The facts that the demo must show, judged by the training's own ledger and the lines on disk. Pure.

Where the ledger or a file holds a fact, the judge does not take the watch's word for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from midwatch.agents.query.timeline import Attempt, Timeline
from midwatch.streams.records import Decision, Finding, Incident, Verdict
from midwatch.streams.records.incidents import RESUMED

ReadLine = Callable[[str, int], str]
"""Takes a path and a line number from 1; returns that line of the file, or "" if there is none."""


@dataclass(frozen=True, slots=True)
class TrainingStart:
    """One start of the training, as its ledger records it."""

    at: float
    first_step: int
    native_id: str


@dataclass(frozen=True, slots=True)
class TrainingLedger:
    """What the training recorded of itself. `saves` are (attempt, step); `faults` are (kind, time)."""

    starts: tuple[TrainingStart, ...] = ()
    saves: tuple[tuple[int, int], ...] = ()
    faults: tuple[tuple[str, float], ...] = ()

    def saved_before(self, attempt: int) -> int | None:
        """The latest checkpoint that an attempt could resume from."""
        return max((step for number, step in self.saves if number < attempt), default=None)


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that must hold. `detail` says what the judge found, or what is missing."""

    name: str
    holds: bool
    detail: str


def read_ledger(text: str) -> TrainingLedger:
    """Reads the ledger's lines. It leaves out an incomplete last line, which the training still writes."""
    starts: list[TrainingStart] = []
    saves: list[tuple[int, int]] = []
    faults: list[tuple[str, float]] = []
    for line in text.splitlines(keepends=True):
        if not line.endswith("\n"):
            break
        row: dict[str, Any] = json.loads(line)
        match row["event"]:
            case "start":
                starts.append(TrainingStart(row["t"], row["first_step"], row["native_id"]))
            case "save":
                saves.append((len(starts), row["step"]))
            case "fault":
                faults.append((row["kind"], row["t"]))
    return TrainingLedger(tuple(starts), tuple(saves), tuple(faults))


def judge(timeline: Timeline | None, ledger: TrainingLedger, read_line: ReadLine) -> list[Fact]:
    """Every fact, in the order in which they come true."""
    attempts = {attempt.number: attempt for attempt in timeline.attempts} if timeline else {}
    first, second = attempts.get(1), attempts.get(2)
    return [
        _verdict("attempt 1 died of an NCCL timeout, and a line proves it", first, "nccl_timeout", read_line),
        _restarted(first),
        _resumed(ledger, second),
        _spike(timeline),
        _verdict("attempt 2 died of CUDA out of memory, under louder timeouts", second, "oom", read_line),
        _refused(second),
        Fact(
            "the training was started exactly twice",
            len(ledger.starts) == 2,  # the demo starts it twice
            f"its ledger counts {len(ledger.starts)}",
        ),
    ]


def settled(attempt: Attempt | None) -> Incident | None:
    """The attempt's incident, once it has settled."""
    incident = attempt.incident if attempt else None
    return incident if incident and incident.state == "settled" else None


def decided(attempt: Attempt | None, actions: Iterable[str]) -> Decision | None:
    """The attempt's first decision on its incident that took one of these actions."""
    found = attempt.decisions if attempt else ()
    return next((d for d in found if d.incident and d.action in actions), None)


def _verdict(name: str, attempt: Attempt | None, error_type: str, read_line: ReadLine) -> Fact:
    incident = settled(attempt)
    if incident is None:
        return Fact(name, False, "no settled incident was seen")
    verdict = incident.verdict
    if verdict.error_type != error_type:
        return Fact(
            name, False, f"the verdict is {verdict.error_type}: {verdict.root_line.strip() or 'no line'}"
        )
    return Fact(name, _stands(verdict, read_line), f"{verdict.root_file}:{verdict.root_line_number}")


def _stands(verdict: Verdict, read_line: ReadLine) -> bool:
    if verdict.root_line_number is None or not verdict.root_line:
        return False
    return read_line(verdict.root_file, verdict.root_line_number).strip() == verdict.root_line.strip()


def _restarted(attempt: Attempt | None) -> Fact:
    name = "it was restarted once"
    decision = decided(attempt, ["restart"])
    if attempt is None or decision is None:
        return Fact(name, False, "no restart was decided")
    if not decision.command:
        return Fact(name, False, f"it was decided, but no command was issued: {decision.reason}")
    done = attempt.restarted
    if done is None:
        return Fact(name, False, "a command was issued, but the executor did not carry it out")
    return Fact(
        name, len(attempt.commands) == 1, f"{done.old_native_id} → {done.new_native_id}, {decision.reason}"
    )


def _resumed(ledger: TrainingLedger, attempt: Attempt | None) -> Fact:
    name = "attempt 2 went on from its checkpoint, and the watch says so"
    saved = ledger.saved_before(2)
    if len(ledger.starts) < 2 or saved is None:  # the demo starts it twice
        return Fact(
            name, False, f"the ledger knows {len(ledger.starts)} starts, the latest checkpoint is {saved}"
        )
    step = ledger.starts[1].first_step
    if step != saved + 1:
        return Fact(name, False, f"checkpoint at {saved}, first step {step}")
    found = next((f for f in attempt.findings if f.kind == RESUMED), None) if attempt else None
    if found is None:
        return Fact(name, False, "the watch does not say from where it went on")
    return Fact(name, found.quantities.get("checkpoint_step") == str(saved), found.detail)


def _spike(timeline: Timeline | None) -> Fact:
    name = "the loss spike is one finding and no restart"
    records = [timed.record for timed in timeline.steps] if timeline else []
    spikes = [r for r in records if isinstance(r, Finding) and r.kind == "loss_spike" and r.open]
    if not spikes:
        return Fact(name, False, "no such finding was seen")
    return Fact(name, len(spikes) == 1 and spikes[0].attempt == 2, spikes[0].detail)  # it spikes in attempt 2


def _refused(attempt: Attempt | None) -> Fact:
    name = "attempt 2 was not restarted, and a decision says why"
    decision = decided(attempt, ["stop", "hold", "restart", "none"])
    if attempt is None or decision is None:
        return Fact(name, False, "nothing was decided")
    return Fact(
        name, decision.action == "stop" and not attempt.commands, f"{decision.action}: {decision.reason}"
    )


def missing(facts: Sequence[Fact]) -> list[Fact]:
    """The facts that do not hold."""
    return [fact for fact in facts if not fact.holds]
