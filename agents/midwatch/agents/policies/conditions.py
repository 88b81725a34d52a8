"""Conditions on an act. They need only known facts, never a file or a command. Pure.

An answer is yes, no, or not asked (`None`). A condition that would read a file or run something is never
asked. An act that depends on it alone is neither granted nor refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from midwatch.streams.records.error_types import named_in


@dataclass(frozen=True, slots=True)
class Always:
    """Always holds."""


@dataclass(frozen=True, slots=True)
class AttemptsBelow:
    """Holds while the number of attempts is below `limit`. The first start is attempt 1."""

    limit: int


@dataclass(frozen=True, slots=True)
class Cooldown:
    """Holds, but a restart waits until `seconds` have passed since the job's last one."""

    seconds: float


@dataclass(frozen=True, slots=True)
class FactIs:
    """Holds if a fact of the line or of the verdict is one of `values`. Empty `values`: if it is known.

    A coarse error type covers its finer ones.
    """

    key: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AllOf:
    """Holds if every condition holds."""

    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Holds if one condition holds."""

    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Not:
    """Holds if `condition` does not hold."""

    condition: Condition


@dataclass(frozen=True, slots=True)
class NotAsked:
    """A condition that would touch a file, run a command or look at another job. `what` names it."""

    what: str


Condition = Always | AttemptsBelow | Cooldown | FactIs | AllOf | AnyOf | Not | NotAsked


@dataclass(frozen=True, slots=True)
class Past:
    """The job's past: accepted restarts after every mode, and the time of the last restart command.

    `resumed_from`: the checkpoint's step from which the last restart resumed; None if it found none.
    `in_vain`: the latest restarts in a row that got no further. `first_step_s`: how long the job's last start
    took to its first step; None if no start made one.
    """

    restarts: int = 0
    last_restart_ms: int | None = None
    now_ms: int = 0
    resumed_from: int | None = None
    in_vain: int = 0
    first_step_s: float | None = None


@dataclass(frozen=True, slots=True)
class ConditionAnswer:
    """Whether a condition holds. `held` None: not asked. `not_before_ms`: it holds only from then on."""

    held: bool | None
    why: str = ""
    not_before_ms: int = 0


@dataclass(frozen=True, slots=True)
class ConditionFacts:
    """The facts that a condition may look at."""

    known: Mapping[str, str] = field(default_factory=dict)
    past: Past = Past()


def ask(condition: Condition, facts: ConditionFacts) -> ConditionAnswer:
    """The answer of the condition to these facts."""
    answer = ConditionAnswer(True)
    match condition:
        case AttemptsBelow(limit):
            attempt = facts.past.restarts + 1
            answer = ConditionAnswer(attempt < limit, f"attempt {attempt} of at most {limit}")
        case Cooldown(seconds):
            answer = _cooldown(seconds, facts.past)
        case FactIs(key, values):
            answer = _fact(key, values, facts.known)
        case AllOf(conditions):
            answer = _all([ask(each, facts) for each in conditions])
        case AnyOf(conditions):
            answer = _any([ask(each, facts) for each in conditions])
        case Not(inner):
            answer = _not(ask(inner, facts), facts.past.now_ms)
        case NotAsked(what):
            answer = ConditionAnswer(None, f"{what} is not asked")
    return answer


def _cooldown(seconds: float, past: Past) -> ConditionAnswer:
    if past.last_restart_ms is None:
        return ConditionAnswer(True)
    until = past.last_restart_ms + int(seconds * 1000)
    return ConditionAnswer(
        True, f"{seconds:g} s lie between two restarts", until if until > past.now_ms else 0
    )


def _fact(key: str, values: tuple[str, ...], known: Mapping[str, str]) -> ConditionAnswer:
    value = known.get(key, "")
    if not value:
        return ConditionAnswer(False, f"{key} is not known")
    held = not values or (named_in(value, values) if key == "error_type" else value in values)
    return ConditionAnswer(held, f"{key} is {value}")


def _all(answers: list[ConditionAnswer]) -> ConditionAnswer:
    for held in (False, None):
        first = next((answer for answer in answers if answer.held is held), None)
        if first is not None:
            return first
    return max(answers, key=lambda answer: answer.not_before_ms, default=ConditionAnswer(True))


def _any(answers: list[ConditionAnswer]) -> ConditionAnswer:
    held = [answer for answer in answers if answer.held]
    if held:
        return min(held, key=lambda answer: answer.not_before_ms)
    unasked = next((answer for answer in answers if answer.held is None), None)
    return unasked or ConditionAnswer(False, ", ".join(answer.why for answer in answers))


def _not(answer: ConditionAnswer, now_ms: int) -> ConditionAnswer:
    if answer.held is None:
        return answer
    waiting = answer.not_before_ms > now_ms
    return ConditionAnswer(not answer.held or waiting, answer.why)
