"""What a policy is: for each mode of an end one clause, and what a clause answers. Pure values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from midwatch.streams.records import Action, Incident


class ClauseKind(StrEnum):
    """Which reasoning a clause uses; each is one file of this folder."""

    VERDICT = "verdict"
    SELECTIVE = "selective"
    ALWAYS = "always"
    NEVER = "never"


class PolicyMode(StrEnum):
    """Which end a clause is for. A verdict of mode `ended` is judged by the clause for `crash`."""

    CRASH = "crash"
    STALL = "stall"
    TIMEOUT = "timeout"
    SUCCESS = "success"


@dataclass(frozen=True, slots=True)
class Clause:
    """What is done about one mode of an end. `max_restarts` None: as often as it happens."""

    kind: ClauseKind
    max_restarts: int | None = 3
    default_action: Action = "stop"
    restart_on_error_types: tuple[str, ...] = ()
    restart_on_subsystems: tuple[str, ...] = ()
    restart_on_signals: tuple[str, ...] = ()
    exclude_error_types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Policy:
    """Clauses by mode; a mode without one is never acted on."""

    name: str
    clauses: Mapping[PolicyMode, Clause] = field(default_factory=dict)
    restart_cancelled: bool = False
    description: str = ""

    def clause(self, mode: str | None) -> Clause:
        """The clause for a verdict's mode."""
        wanted = PolicyMode.CRASH if mode in ("ended", None) else PolicyMode(mode)
        return self.clauses.get(wanted, Clause(ClauseKind.NEVER))


@dataclass(frozen=True, slots=True)
class Choice:
    """A clause's answer, before budget and arming are looked at."""

    action: Action
    reason: str
    near_misses: tuple[str, ...] = ()


Judge = Callable[[Clause, Incident], Choice]
