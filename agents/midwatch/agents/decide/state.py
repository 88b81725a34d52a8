"""What decide remembers of a job. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from midwatch.agents.policies.restarts import attempts_in_vain
from midwatch.streams.records import Decision, Incident, SpecEvent


@dataclass(frozen=True, slots=True)
class Issued:
    """A command that decide wrote: for which incident and mode of its end, and whether it was accepted."""

    id: str
    attempt: int
    seq: int
    mode: str
    incident: Incident
    accepted: bool = False
    at_ms: int | None = None
    action: Literal["restart", "cancel"] = "restart"


@dataclass(frozen=True, slots=True)
class DecideState:
    """What decide remembers of a job."""

    version: int = 1
    job: str = ""
    spec: SpecEvent | None = None
    disarmed: bool = False
    restarts: Mapping[str, int] = field(default_factory=dict)  # accepted restarts, by mode
    issued: Issued | None = None
    last: Decision | None = None
    open: tuple[str, ...] = ()  # kinds of open findings that hold the job
    poisoned: str = ""  # why decide holds this job until a person arms it; "" if it does not
    counted: tuple[int, ...] = ()  # the attempts whose restart was accepted: each counts once
    ended: tuple[int, str] = (0, "")  # the attempt that settled last, and the mode of its end
    due_ms: int | None = None
    resumed_from: int | None = None  # the checkpoint's step from which the last restart resumed
    in_vain: tuple[int, ...] = ()  # the latest attempts in a row whose restart got no further
    first_step_s: float | None = None  # from the last start to its first step


def accepted_restart(state: DecideState) -> Issued | None:
    """The last command, if it is an accepted restart."""
    issued = state.issued
    return issued if issued is not None and issued.accepted and issued.action == "restart" else None


def learned(state: DecideState, incident: Incident) -> DecideState:
    """The state with what a settled incident tells of the job's restarts and of its last start."""
    issued, first_step_s = accepted_restart(state), incident.first_step_s or state.first_step_s
    in_vain = attempts_in_vain(state.in_vain, issued.incident if issued else None, incident)
    return replace(state, in_vain=in_vain, first_step_s=first_step_s)
