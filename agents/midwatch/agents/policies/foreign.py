"""Foreign policies: what one is, and how it judges beside ours. Pure."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from midwatch.agents.policies.base import Clause, Judge, Policy, PolicyChoice, PolicyMode
from midwatch.agents.policies.conditions import Past
from midwatch.streams.records import Incident, codec

_MODES = (PolicyMode.CRASH, PolicyMode.STALL, PolicyMode.TIMEOUT)


@runtime_checkable
class ForeignPolicy(Protocol):
    """Decides about settled incidents. The same arguments must give the same choice, on any machine.

    It must not read a clock, a file or a random number, nor keep anything between two calls.
    """

    @property
    def name(self) -> str:
        """What settings and `--policy` call it."""
        ...

    @property
    def version(self) -> str:
        """Another one wherever its answers change."""
        ...

    @property
    def max_restarts(self) -> int | None:
        """Restarts after each mode of an end; None for as often as it happens."""
        ...

    def judge(self, clause: Clause, incident: Incident, past: Past) -> PolicyChoice:
        """What is to be done about the incident. `clause` holds the budget, `past` what was done before."""
        ...


def foreign_policy(part: ForeignPolicy) -> Policy:
    """The policy by its own name: it judges crash, stall and timeout, and starts nothing after a success."""
    return Policy(part.name, {mode: Clause(part.name, part.max_restarts) for mode in _MODES})


def foreign_judge(part: ForeignPolicy) -> Judge:
    """Its reasoning; where it raises or gives what is no choice, a person is asked."""

    def judge(clause: Clause, incident: Incident, past: Past) -> PolicyChoice:
        try:
            choice = part.judge(clause, incident, past)
        except Exception as error:  # a stranger's mistake must not stop the job's other records
            return _held(part, f"it raised {type(error).__name__}")
        if not isinstance(choice, PolicyChoice) or codec.out_of_bounds(choice):
            return _held(part, f"it gave what is no choice, a {type(choice).__name__}")
        return choice

    return judge


def _held(part: ForeignPolicy, why: str) -> PolicyChoice:
    return PolicyChoice("hold", f"the policy {part.name} {part.version} failed: {why}")
