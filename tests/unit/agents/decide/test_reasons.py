"""The words of reasons: each text that decide can write has its word, and no text becomes a label."""

from __future__ import annotations

import inspect
from dataclasses import replace

import pytest

from midwatch.agents.decide import decision as module
from midwatch.agents.decide.reasons import WORDS, reason_word
from midwatch.streams.records import Decision
from unit.upgrade.filled import filled

INCIDENT = replace(filled(Decision), incident="local:me/llm#1.1")


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("the job ended as it meant to", "healthy"),
        ("a record of this job could not be read: no JSON", "unreadable_record"),
        ("somebody has already started it again: slurm:4:1", "already_restarted"),
        ("a command for attempt 2 is already out", "already_commanded"),
        ("there is no policy called 'x'", "no_policy"),
        ("the policy 'x' that the job brings cannot be read: y", "no_policy"),
        ("ada cancelled it", "cancelled_by_person"),
        ("two attempts of this job are alive at once", "two_alive"),
        (module._CUT, "history_cut"),
        ("the budget is spent: 3 of 3 restarts after a crash", "budget_spent"),
        ("the job's own budget is spent: 3 of 3 restarts", "budget_spent"),
        (
            "neither the scheduler nor the process reported the end; log text alone is no proof",
            "end_not_proved",
        ),
        ("the executor refused the command: storm", "command_refused"),
        ("the executor could not carry out the command: x", "command_failed"),
        ("the executor got the command too late: x", "command_expired"),
        ("cuda_oom is transient; observing only: the job is not armed", "observing"),
        ("cuda_oom is transient", "policy"),
    ],
)
def test_a_reason_has_its_word(reason: str, word: str) -> None:
    assert reason_word(replace(INCIDENT, reason=reason)) == word
    assert word in WORDS


def test_a_decision_on_a_finding_is_told_as_one() -> None:
    assert (
        reason_word(replace(INCIDENT, incident="", reason="loss spike; a finding alone ends no job"))
        == "finding"
    )


def test_each_text_above_is_one_that_decide_writes() -> None:
    source = inspect.getsource(module)
    for beginning in (
        "the job ended as it meant to",
        "is already out",
        "the budget is spent",
        " cancelled it",
    ):
        assert beginning in source
