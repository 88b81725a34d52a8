"""Turns a settled incident into a decision with its reason, and at most one command. Pure.

The state of one job goes in and comes out. `now_ms` is the append time of the record. Budgets count
accepted commands by their forwarded outcomes, so a lost or refused command costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from midwatch.agents.decide.state import DecideState, Issued, accepted_restart, learned
from midwatch.agents.policies import POLICIES, choose
from midwatch.agents.policies.base import Judge, Policy, PolicyChoice, PolicyMode
from midwatch.agents.policies.conditions import Past
from midwatch.agents.policies.reader import read_policy
from midwatch.rules.errors import RuleErrors
from midwatch.streams.records import (
    Action,
    Command,
    Decision,
    Finding,
    Forwarded,
    Incident,
    IncidentRecord,
    Outcome,
    PersonAct,
    SchedulerFact,
    SpecEvent,
)
from midwatch.streams.records.effect_keys import command_id

_CUT = (
    "the log of this job begins in the middle of its history and no snapshot sums up what came before: "
    "it is observed only, until it is armed again"
)
_HOLDING_FINDINGS = ("blind", "two_alive", "poisoned")


@dataclass(frozen=True, slots=True)
class Rulebook:
    """Policies, limits and the signer. `acting`: the watch may act; a job must also be armed."""

    policies: Mapping[str, Policy]
    sign: Callable[[Command], Command]
    default_policy: str = "verdict"
    acting: bool = False
    issuer: str = "midwatch-decide"
    command_lifetime_ms: int = 300_000
    reissues: int = 3
    judges: Mapping[str, Judge] = field(default_factory=lambda: POLICIES)


@dataclass(frozen=True, slots=True)
class Decided:
    """The state after a record, with the decisions and commands to send."""

    state: DecideState
    decisions: tuple[Decision, ...] = ()
    commands: tuple[Command, ...] = ()


def decide(state: DecideState, record: IncidentRecord, now_ms: int, book: Rulebook) -> Decided:
    """Folds one record of the topic `incidents` into the state of its job."""
    match record:
        case Incident():
            state = replace(state, job=record.job, spec=record.spec or state.spec)
            if record.state != "settled":
                return Decided(state)
            return _on_settled(state, record, now_ms, book)
        case Finding():
            return _on_finding(replace(state, job=record.job), record, now_ms, book)
        case Forwarded():
            return _on_forwarded(state, record, now_ms, book)
        case _:
            return Decided(state)


def _on_forwarded(state: DecideState, record: Forwarded, now_ms: int, book: Rulebook) -> Decided:
    match record.record:
        case Outcome():
            return _on_outcome(state, record.record, now_ms, book)
        case SpecEvent():
            return Decided(replace(state, job=record.record.job, spec=record.record))
        case PersonAct():
            act = record.record
            if act.act in ("arm", "disarm"):
                spec = replace(state.spec, armed=act.act == "arm") if state.spec else None
                state = replace(state, job=act.job, spec=spec, disarmed=act.act == "disarm")
            if act.act == "arm":
                # Whoever arms a job again has looked at its unreadable record.
                still_open = tuple(kind for kind in state.open if kind != "poisoned")
                state = replace(state, poisoned="", open=still_open)
            return Decided(state)
        case Incident() | Finding():
            return Decided(state)  # only decide passes these on


def _on_outcome(state: DecideState, outcome: Outcome, now_ms: int, book: Rulebook) -> Decided:
    state = _counted(state, outcome)
    if outcome.action == "restart" and outcome.state == "done":
        # An epoch cannot be compared with a step: it only shows that the start did not begin anew.
        step = outcome.checkpoint_step
        state = replace(state, resumed_from=step if step is None or outcome.checkpoint_unit == "step" else 0)
    issued = state.issued
    if issued is None or issued.id != outcome.command:
        return Decided(state)
    if outcome.state == "accepted":
        return Decided(replace(state, issued=replace(issued, accepted=True)))
    if outcome.state == "expired" and issued.seq < book.reissues:
        # The next command has the same effect key, so the executor finds earlier effects and repeats none.
        return _issued_again(state, issued, now_ms, book)
    if outcome.state in ("refused", "failed", "expired"):
        result = {
            "refused": "refused the command",
            "failed": "could not carry out the command",
            "expired": "got the command too late",
        }[outcome.state]
        choice = PolicyChoice("hold", f"the executor {result}: {outcome.reason}")
        decision = _decision(state, issued.incident, choice, now_ms, book)
        return Decided(replace(state, last=decision), (decision,))
    return Decided(state)


def _counted(state: DecideState, outcome: Outcome) -> DecideState:
    """Counts an accepted restart against the budget, even if this state issued no such command.

    After a loss of Redis, decide judges the past again by the present policy and mode. It may then reach
    other decisions than before.
    """
    if outcome.action != "restart" or outcome.state not in ("accepted", "done"):
        return state
    if outcome.attempt in state.counted:
        return state
    issued, (attempt, mode) = state.issued, state.ended
    if issued is not None and issued.attempt == outcome.attempt:
        mode = issued.mode
    elif attempt != outcome.attempt:
        mode = PolicyMode.CRASH
    used = {**state.restarts, mode: state.restarts.get(mode, 0) + 1}
    return replace(state, restarts=used, counted=(*state.counted, outcome.attempt))


def _issued_again(state: DecideState, issued: Issued, now_ms: int, book: Rulebook) -> Decided:
    """Judges an attempt again, as if for its first command, and issues the next. It costs the budget once."""
    without = replace(state, issued=None)
    if issued.attempt in state.counted:
        restarts = {**state.restarts, issued.mode: state.restarts[issued.mode] - 1}
        counted = tuple(attempt for attempt in state.counted if attempt != issued.attempt)
        without = replace(without, restarts=restarts, counted=counted)
    turn = _on_settled(without, issued.incident, now_ms, book, seq=issued.seq + 1)
    return replace(turn, state=replace(turn.state, restarts=state.restarts, counted=state.counted))


def _on_finding(state: DecideState, finding: Finding, now_ms: int, book: Rulebook) -> Decided:
    if finding.kind in _HOLDING_FINDINGS:
        others = tuple(kind for kind in state.open if kind != finding.kind)
        state = replace(state, open=(*others, finding.kind) if finding.open else others)
    if not finding.open:
        return Decided(state)
    if finding.kind in _HOLDING_FINDINGS:
        action: Action = "hold"
        reason = finding.detail
    else:
        action, reason = "none", f"{finding.detail}; a finding alone ends no job"
    decision = Decision(
        job=finding.job,
        attempt=finding.attempt,
        incident="",
        revision=0,
        action=action,
        policy=_policy_name(state, book),
        reason=reason,
        at_ms=now_ms,
        armed=_armed(state, book),
    )
    return Decided(replace(state, last=decision), (decision,))


def _on_settled(state: DecideState, incident: Incident, now_ms: int, book: Rulebook, seq: int = 1) -> Decided:
    state = learned(replace(state, ended=(incident.attempt, _mode(incident))), incident)
    choice, limit, used = _choice(state, incident, now_ms, book)
    decision = _decision(state, incident, choice, now_ms, book)
    if choice.action not in ("restart", "cancel"):
        return Decided(replace(state, last=decision), (decision,))
    if choice.action == "restart":
        decision = replace(decision, restart_number=used + 1, restart_limit=limit)
    if state.spec is None or not decision.armed:
        why = _why_observing(state, book)
        decision = replace(decision, reason=f"{decision.reason}; observing only: {why}")
        return Decided(replace(state, last=decision), (decision,))
    not_before_ms = max(now_ms, choice.not_before_ms)
    command = book.sign(_command(state.spec, incident, decision, book, seq=seq, not_before_ms=not_before_ms))
    decision = replace(decision, command=command.id)
    issued = Issued(
        command.id,
        incident.attempt,
        seq,
        _mode(incident),
        incident,
        at_ms=not_before_ms,
        action=command.action,
    )
    return Decided(replace(state, last=decision, issued=issued), (decision,), (command,))


def _choice(
    state: DecideState, incident: Incident, now_ms: int, book: Rulebook
) -> tuple[PolicyChoice, int | None, int]:
    """The choice, its limit of restarts (None: no limit), and the restarts that count against the limit."""
    without_policy = _choice_without_policy(state, incident)
    if without_policy is not None:
        return without_policy, None, 0
    policy = _policy(state, book)
    if isinstance(policy, str):
        return PolicyChoice("hold", policy), None, 0
    fact, verdict = incident.scheduler, incident.verdict
    if fact is not None and fact.by_person and not policy.restart_cancelled:
        missed = (f"{verdict.error_type} would be judged, but a person ended it",) if verdict.rule else ()
        return PolicyChoice("none", f"{fact.by_person} cancelled it", missed), None, 0
    clause, choice = choose(policy, incident, _past(state, now_ms), book.judges)
    used = sum(state.restarts.values()) if clause.across_modes else state.restarts.get(_mode(incident), 0)
    if choice.action in ("restart", "cancel"):
        choice = _without_doubt(state, incident, choice)
    if choice.action == "restart":
        choice = _within_bounds(state, incident, choice, clause.max_restarts, used)
    return choice, _limit(state, clause.max_restarts), used


def _policy(state: DecideState, book: Rulebook) -> Policy | str:
    """The policy for this job, from its spec if that holds one; or the reason why there is none."""
    name, text = _policy_name(state, book), state.spec.policy_text if state.spec else ""
    if not text:
        return book.policies.get(name) or f"there is no policy called {name!r}"
    try:
        return _job_policy(name, text)
    except RuleErrors as error:
        return f"the policy {name!r} that the job brings cannot be read: {error.errors[0].what}"


@lru_cache(maxsize=256)
def _job_policy(name: str, text: str) -> Policy:
    return read_policy(name, text.encode())


def _past(state: DecideState, now_ms: int) -> Past:
    issued, total, in_vain = accepted_restart(state), sum(state.restarts.values()), len(state.in_vain)
    restarted_ms = issued.at_ms if issued is not None else None
    return Past(total, restarted_ms, now_ms, state.resumed_from, in_vain, state.first_step_s)


def _choice_without_policy(state: DecideState, incident: Incident) -> PolicyChoice | None:
    """The choice where no policy is needed; None where the policy decides."""
    successor, attempt = incident.superseded_by, incident.attempt
    issued = attempt in state.counted or (state.issued is not None and state.issued.attempt == attempt)
    reasons = (
        (incident.verdict.state == "healthy", PolicyChoice("none", "the job ended as it meant to")),
        (
            bool(state.poisoned),
            PolicyChoice("hold", f"a record of this job could not be read: {state.poisoned}"),
        ),
        (bool(successor), PolicyChoice("none", f"somebody has already started it again: {successor}")),
        (issued, PolicyChoice("none", f"a command for attempt {attempt} is already out")),
    )
    return next((choice for applies, choice in reasons if applies), None)


def _without_doubt(state: DecideState, incident: Incident, choice: PolicyChoice) -> PolicyChoice:
    """The policy's choice to act; `hold` while the state of the job is in doubt."""
    fact = incident.scheduler
    doubts = (
        ("two_alive" in state.open, "two attempts of this job are alive at once"),
        ("poisoned" in state.open, "a record of this job could not be folded: see the dead letters"),
        (incident.cut, _CUT),
        (_limit_cancelled(fact), f"the scheduler itself cancelled it: {fact and (fact.reason or fact.new)}"),
    )
    doubt = next((doubt for applies, doubt in doubts if applies), "")
    return PolicyChoice("hold", doubt, (*choice.near_misses, choice.reason)) if doubt else choice


def _limit_cancelled(fact: SchedulerFact | None) -> bool:
    """Whether neither a person nor a command cancelled the job, but a limit or a dependency."""
    return fact is not None and (fact.new, fact.error_type, fact.by_person) == ("CANCELLED", "cancelled", "")


def _within_bounds(
    state: DecideState, incident: Incident, choice: PolicyChoice, limit: int | None, used: int
) -> PolicyChoice:
    """The policy's choice to restart; `stop` if the budget is spent, `hold` if nothing proves the end."""
    missed = (*choice.near_misses, choice.reason)
    if limit is not None and used >= limit:
        return PolicyChoice(
            "stop", f"the budget is spent: {used} of {limit} restarts after a {_mode(incident)}", missed
        )
    total, allowed = sum(state.restarts.values()), state.spec.max_restarts if state.spec else None
    if allowed is not None and total >= allowed:
        return PolicyChoice("stop", f"the job's own budget is spent: {total} of {allowed} restarts", missed)
    if incident.silence is None and not incident.words:
        return PolicyChoice(
            "hold",
            "neither the scheduler nor the process reported the end; log text alone is no proof",
            missed,
        )
    return choice


def _limit(state: DecideState, limit: int | None) -> int | None:
    job_limit = state.spec.max_restarts if state.spec else None
    return min((n for n in (limit, job_limit) if n is not None), default=None)


def _decision(
    state: DecideState, incident: Incident, choice: PolicyChoice, now_ms: int, book: Rulebook
) -> Decision:
    return Decision(
        job=incident.job,
        attempt=incident.attempt,
        incident=incident.id,
        revision=incident.revision,
        action=choice.action,
        policy=_policy_name(state, book),
        reason=choice.reason,
        at_ms=now_ms,
        armed=_armed(state, book),
        near_misses=choice.near_misses,
    )


def _command(
    spec: SpecEvent, incident: Incident, decision: Decision, book: Rulebook, *, seq: int, not_before_ms: int
) -> Command:
    return Command(
        id=command_id(incident.job, incident.attempt, seq),
        job=incident.job,
        attempt=incident.attempt,
        seq=seq,
        action="cancel" if decision.action == "cancel" else "restart",
        incarnation=incident.incarnation,
        incident=incident.id,
        revision=incident.revision,
        reason=decision.reason,
        not_before_ms=not_before_ms,
        expires_ms=not_before_ms + book.command_lifetime_ms,
        issuer=book.issuer,
        spec=spec.spec,
        bundle=incident.verdict.bundle,
        restart_number=decision.restart_number or 1,
        restart_limit=decision.restart_limit,
    )


def _why_observing(state: DecideState, book: Rulebook) -> str:
    if state.spec is None:
        return "no spec says how to start it again"
    return "the job is not armed" if book.acting else "the watch is in observe mode"


def _armed(state: DecideState, book: Rulebook) -> bool:
    return book.acting and state.spec is not None and state.spec.armed and not state.disarmed


def _policy_name(state: DecideState, book: Rulebook) -> str:
    return state.spec.policy if state.spec and state.spec.policy else book.default_policy


def _mode(incident: Incident) -> str:
    mode = incident.verdict.mode
    return PolicyMode.CRASH if mode in ("ended", None) else str(mode)
