"""The reason of a decision as one of a few words, for metrics. Pure. People read the reason itself."""

from __future__ import annotations

from midwatch.streams.records import Decision

POLICY = "policy"
"""The policy's own choice, and no rule of decide overruled it."""
FINDING = "finding"
OBSERVING = "observing"
CANCELLED = "cancelled_by_person"

_BEGINNINGS = {
    "the job ended as it meant to": "healthy",
    "a record of this job could not be read": "unreadable_record",
    "a record of this job could not be folded": "unreadable_record",
    "somebody has already started it again": "already_restarted",
    "a command for attempt": "already_commanded",
    "there is no policy called": "no_policy",
    "the policy ": "no_policy",
    "two attempts of this job": "two_alive",
    "the log of this job begins": "history_cut",
    "the budget is spent": "budget_spent",
    "the job's own budget is spent": "budget_spent",
    "neither the scheduler nor the process": "end_not_proved",
    "the executor refused": "command_refused",
    "the executor could not": "command_failed",
    "the executor got": "command_expired",
}
WORDS = frozenset({POLICY, FINDING, OBSERVING, CANCELLED, *_BEGINNINGS.values()})


def reason_word(decision: Decision) -> str:
    """One of `WORDS`. A text that is not known counts as the policy's."""
    for beginning, word in _BEGINNINGS.items():
        if decision.reason.startswith(beginning):
            return word
    if not decision.incident:
        return FINDING
    if "; observing only: " in decision.reason:
        return OBSERVING
    return CANCELLED if decision.reason.endswith(" cancelled it") else POLICY
