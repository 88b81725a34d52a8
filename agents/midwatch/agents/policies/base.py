"""A policy as a value: one clause for each mode of an end, and the choice that a clause makes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from midwatch.agents.policies.conditions import Always, Condition, Past
from midwatch.rules.model import Note
from midwatch.streams.records import Action, Incident


class ClauseKind(StrEnum):
    """The reasoning that a clause uses. Each is one file of this folder."""

    VERDICT = "verdict"
    SELECTIVE = "selective"
    ALWAYS = "always"
    NEVER = "never"
    GUARDED = "guarded"
    EXPECTED_COST = "expected_cost"


class PolicyMode(StrEnum):
    """The end that a clause is for. The clause for `crash` also judges a verdict of mode `ended`."""

    CRASH = "crash"
    STALL = "stall"
    TIMEOUT = "timeout"
    SUCCESS = "success"


class OnTimeLimit(StrEnum):
    """What a policy does after the scheduler's time limit."""

    CONTINUE = "continue"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Guard:
    """One request of a guarded clause: its action, if one of its rules has a hit and its condition holds.

    Empty `rules`: any rule. `states`: the scheduler's transition in capitals, None for any state.
    """

    action: Action
    rules: tuple[str, ...] = ()
    states: tuple[str | None, str | None] | None = None
    condition: Condition = Always()  # noqa: RUF009  # a value that never changes
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Costs:
    """What `expected_cost` weighs, in seconds of the whole job: both sides cost all its GPUs alike.

    `waiting`: until a person looks. `wasted_start`: a start that fails again. `margin`: after a failure that
    a rule calls permanent, a wasted start counts so many times.
    """

    waiting: float = 6 * 3600.0
    wasted_start: float = 2 * 3600.0
    margin: float = 3.0


@dataclass(frozen=True, slots=True)
class Clause:
    """What to do about one mode of an end. `max_restarts` None: no limit.

    With `across_modes` the restarts after every mode count against the limit. `restart_reason` and
    `stop_reason` are the policy's words: they follow the reason in brackets. Only the kind `guarded` reads
    `guards`, and only `expected_cost` reads `costs`.
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
    costs: Costs = Costs()  # a value that never changes


@dataclass(frozen=True, slots=True)
class Policy:
    """Clauses by mode. A mode without a clause gets no restart. `notes` come from reading its file.

    `on_time_limit` None: the clause for the mode `timeout` judges a time limit too.
    """

    name: str
    clauses: Mapping[PolicyMode, Clause] = field(default_factory=dict)
    restart_cancelled: bool = False
    description: str = ""
    notes: tuple[Note, ...] = ()
    on_time_limit: OnTimeLimit | None = None

    def clause(self, mode: str | None) -> Clause:
        """The clause for a verdict's mode."""
        policy_mode = PolicyMode.CRASH if mode in ("ended", None) else PolicyMode(mode)
        return self.clauses.get(policy_mode, Clause(ClauseKind.NEVER))


@dataclass(frozen=True, slots=True)
class PolicyChoice:
    """A clause's choice, before budget and arming count. `not_before_ms`: an act waits until then."""

    action: Action
    reason: str
    near_misses: tuple[str, ...] = ()
    not_before_ms: int = 0


Judge = Callable[[Clause, Incident, Past], PolicyChoice]
