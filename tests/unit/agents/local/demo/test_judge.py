"""The demo's judge believes the training's ledger and the lines on disk, not the watch."""

from __future__ import annotations

import json
from dataclasses import replace

from midwatch.agents.local.demo.judge import Fact, judge, missing, read_ledger
from midwatch.agents.query.timeline import Timed, timeline
from midwatch.streams.records import Command, Decision, Finding, Incident, Outcome, Verdict

JOB = "local:ada/toy"


def _ledger(*rows: dict[str, object]) -> str:
    return "".join(json.dumps({"t": 1.0, "native_id": "7", **row}) + "\n" for row in rows)


LEDGER = _ledger(
    {"event": "start", "first_step": 1},
    {"event": "save", "step": 20},
    {"event": "save", "step": 40},
    {"event": "fault", "kind": "nccl"},
    {"event": "start", "first_step": 41},
    {"event": "save", "step": 60},
)


def _incident(attempt: int, error_type: str) -> Incident:
    verdict = Verdict(
        "failed", "crash", error_type, root_line=f"{error_type}!", root_file="/l/a", root_line_number=attempt
    )
    return Incident(f"{JOB}#{attempt}", JOB, attempt, f"local:{attempt}:1", "settled", 1, verdict)


def _decision(attempt: int, action: str, command: str = "") -> Decision:
    return Decision(JOB, attempt, f"{JOB}#{attempt}", 1, action, "verdict", "so", 1, True, command=command)  # type: ignore[arg-type]  # actions of the test


RECORDS = (
    _incident(1, "nccl_timeout"),
    _decision(1, "restart", "c1"),
    Command("c1", JOB, 1, 1, "restart", "local:1:1", f"{JOB}#1", 1, "so", 0, 9, "me", "s", "b"),
    Outcome(JOB, "c1", 1, "restart", "done", "ok", "7", "8"),
    Finding(JOB, 2, "resumed", False, 4, "resumed from 40", quantities={"checkpoint_step": "40"}),
    Finding(JOB, 2, "loss_spike", True, 5, "up"),
    _incident(2, "oom"),
    _decision(2, "stop"),
)


def _judged(
    records: tuple[object, ...] = RECORDS, ledger: str = LEDGER, line: str | None = None
) -> list[Fact]:
    told = timeline(JOB, [Timed(i, record) for i, record in enumerate(records)])
    lines = {1: "nccl_timeout!\n", 2: "oom!\n"}
    return missing(
        judge(told, read_ledger(ledger), lambda _, number: lines.get(number, "") if line is None else line)
    )


def test_the_whole_story_holds() -> None:
    assert _judged() == []


def test_without_a_watch_nothing_holds_but_the_count_of_starts() -> None:
    facts = judge(None, read_ledger(LEDGER), lambda *_: "")
    assert [fact.holds for fact in facts] == [False, False, False, False, False, False, True]


def test_a_root_line_that_is_not_in_the_file_is_no_proof() -> None:
    assert [fact.name[:9] for fact in _judged(line="something else\n")] == ["attempt 1", "attempt 2"]


def test_a_third_start_or_a_wrong_step_fails() -> None:
    third = LEDGER + _ledger({"event": "start", "first_step": 61})
    assert [fact.name for fact in _judged(ledger=third)] == ["the training was started exactly twice"]
    wrong = LEDGER.replace('"first_step": 41', '"first_step": 21')
    assert [fact.name for fact in _judged(ledger=wrong)] == [
        "attempt 2 went on from its checkpoint, and the watch says so"
    ]


def test_a_resume_that_the_watch_does_not_report_or_reports_wrongly_fails() -> None:
    silent = tuple(r for r in RECORDS if not (isinstance(r, Finding) and r.kind == "resumed"))
    wrong = tuple(
        replace(r, quantities={"checkpoint_step": "20"})
        if isinstance(r, Finding) and r.kind == "resumed"
        else r
        for r in RECORDS
    )
    for records in (silent, wrong):
        assert [fact.name[:27] for fact in _judged(records)] == ["attempt 2 went on from its "]


def test_another_verdict_is_named() -> None:
    records = tuple(
        replace(r, verdict=replace(r.verdict, error_type="unknown"))
        if isinstance(r, Incident) and r.attempt == 1
        else r
        for r in RECORDS
    )
    (fact,) = _judged(records)
    assert "unknown" in fact.detail


def test_no_outcome_means_the_executor_did_nothing() -> None:
    (fact,) = _judged(tuple(r for r in RECORDS if not isinstance(r, Outcome)))
    assert "executor" in fact.detail


def test_a_line_of_the_ledger_still_being_written_is_left_out() -> None:
    assert len(read_ledger(LEDGER + '{"event": "sta').starts) == 2
