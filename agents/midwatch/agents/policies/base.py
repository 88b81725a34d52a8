"""What a policy is: for each mode of an end one clause, and what a clause answers. Pure values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from midwatch.agents.policies.conditions import Always, Condition, Past
from midwatch.rules.model import Note
from midwatch.streams.records import Action, Incident


class ClauseKind(StrEnum):
    """Which reasoning a clause uses; each is one file of this folder."""

    VERDICT = "verdict"
    SELECTIVE = "selective"
    ALWAYS = "always"
    NEVER = "never"
    GUARDED = "guarded"


class PolicyMode(StrEnum):
    """Which end a clause is for. A verdict of mode `ended` is judged by the clause for `crash`."""

    CRASH = "crash"
    STALL = "stall"
    TIMEOUT = "timeout"
    SUCCESS = "success"


@dataclass(frozen=True, slots=True)
class Guard:
    """One wish of a guarded clause: what is done if one of its rules was hit and its condition holds.

    `rules` empty: whatever was hit. `states`: the scheduler's transition in capitals, None for any state.
    """

    action: Action
    rules: tuple[str, ...] = ()
    states: tuple[str | None, str | None] | None = None
    condition: Condition = Always()  # noqa: RUF009  # a value that never changes
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Clause:
    """What is done about one mode of an end. `max_restarts` None: as often as it happens.

    With `across_modes` the restarts after every mode count against it. `restart_reason` and `stop_reason`
    are the policy's own words, told behind the reason. `guards` are read by the kind `guarded` alone.
    """

    kind: ClauseKind | str  # a word of the latter kind names a foreign policy
    max_restarts: int | None = 3
    default_action: Action = "stop"
    restart_on_error_types: tuple[str, ...] = ()
    restart_on_subsystems: tuple[str, ...] = ()
    restart_on_signals: tuple[str, ...] = ()
    exclude_error_types: tuple[str, ...] = ()
    across_modes: bool = False
    restart_reason: str = ""
    stop_reason: str = ""
    guards: tuple[Guard, ...] = ()


@dataclass(frozen=True, slots=True)
class Policy:
    """Clauses by mode; a mode without one is never acted on. `notes`: what reading it wants known."""

    name: str
    clauses: Mapping[PolicyMode, Clause] = field(default_factory=dict)
    restart_cancelled: bool = False
    description: str = ""
    notes: tuple[Note, ...] = ()

    def clause(self, mode: str | None) -> Clause:
        """The clause for a verdict's mode."""
        wanted = PolicyMode.CRASH if mode in ("ended", None) else PolicyMode(mode)
        return self.clauses.get(wanted, Clause(ClauseKind.NEVER))


@dataclass(frozen=True, slots=True)
class PolicyChoice:
    """A clause's answer, before budget and arming are looked at. `not_before_ms`: an act waits until then."""

    action: Action
    reason: str
    near_misses: tuple[str, ...] = ()
    not_before_ms: int = 0


Judge = Callable[[Clause, Incident, Past], PolicyChoice]
