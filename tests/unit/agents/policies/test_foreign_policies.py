"""A foreign policy: its answer counts as ours do, and a broken one holds the job for a person."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from midwatch.agents.policies import POLICIES, choose
from midwatch.agents.policies.base import Clause, PolicyChoice
from midwatch.agents.policies.conditions import Past
from midwatch.agents.policies.foreign import foreign_judge, foreign_policy
from midwatch.streams.records import Incident
from unit.agents.policies.incidents import hit, incident


@dataclass(frozen=True)
class Own:
    """Answers as it was told."""

    answer: Callable[[], Any]
    name: str = "own"
    version: str = "3"
    max_restarts: int | None = 7

    def judge(self, _clause: Clause, _incident: Incident, _past: Past) -> PolicyChoice:
        found: PolicyChoice = self.answer()
        return found


def _asked(answer: Callable[[], Any]) -> tuple[Clause, PolicyChoice]:
    part = Own(answer)
    judges = {**POLICIES, part.name: foreign_judge(part)}
    return choose(foreign_policy(part), incident(hit("x", "oom"), mode="crash"), None, judges)


def _raise() -> PolicyChoice:
    raise RuntimeError("at night")


def test_its_choice_is_taken_with_its_own_budget() -> None:
    clause, choice = _asked(lambda: PolicyChoice("restart", "why not"))
    assert (choice.action, choice.reason, clause.max_restarts) == ("restart", "why not", 7)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (_raise, "it raised RuntimeError"),
        (lambda: "restart", "no choice, a str"),
        (lambda: PolicyChoice("reboot", "x"), "no choice"),  # type: ignore[arg-type]  # what is told apart here
        (lambda: PolicyChoice("restart", 5), "no choice"),  # type: ignore[arg-type]  # as above
    ],
    ids=["raises", "text", "unknown-action", "no-reason"],
)
def test_a_broken_one_holds_the_job(answer: Callable[[], Any], why: str) -> None:
    _, choice = _asked(answer)
    assert choice.action == "hold"
    assert choice.reason.startswith("the policy own 3 failed: ")
    assert why in choice.reason
