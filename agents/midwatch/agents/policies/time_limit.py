"""A scheduler's time limit, for a policy that says what to do at one."""

from __future__ import annotations

from midwatch.agents.policies.base import Clause, ClauseKind, OnTimeLimit, Policy, PolicyChoice, PolicyMode
from midwatch.agents.policies.conditions import Past
from midwatch.streams.records import Incident

_UNLIMITED = Clause(ClauseKind.ALWAYS, max_restarts=None)


def judge(policy: Policy, incident: Incident, past: Past) -> tuple[Clause, PolicyChoice]:
    """A restart if the policy continues and the attempt got further than its checkpoint.

    The policy's clause for the mode `timeout`, if it has one, limits the number of restarts.
    """
    clause, step = policy.clauses.get(PolicyMode.TIMEOUT, _UNLIMITED), incident.verdict.step
    if policy.on_time_limit is OnTimeLimit.STOP:
        return clause, PolicyChoice("stop", "the time limit was reached, and this policy stops there")
    if step is None:
        return clause, PolicyChoice("hold", "the time limit was reached and no step was seen")
    if past.restarts and (past.resumed_from is None or step <= past.resumed_from):
        start = "no checkpoint" if past.resumed_from is None else f"step {past.resumed_from}"
        missed = f"the time limit was reached at step {step}, and the last start resumed from {start}"
        return clause, PolicyChoice("hold", f"{missed}: another one would get no further")
    return clause, PolicyChoice("restart", "the time limit was reached, and this policy continues")
