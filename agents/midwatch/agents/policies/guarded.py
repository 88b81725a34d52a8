"""A list of guarded requests: the first that applies and whose condition holds is granted."""

from __future__ import annotations

from midwatch.agents.policies.base import Clause, Guard, PolicyChoice
from midwatch.agents.policies.conditions import ConditionFacts, Past, ask
from midwatch.streams.records import Hit, Incident, SchedulerFact
from midwatch.streams.records.error_types import named_in

_MODES = {"TIMEOUT": "timeout", "FINISHED": "success", "COMPLETED": "success"}
_RUNNING = ("RUNNING", "COMPLETING")


def judge(clause: Clause, incident: Incident, past: Past) -> PolicyChoice:
    """Excluded error types come first, then the guards in order, then the clause's default."""
    verdict = incident.verdict
    if named_in(verdict.error_type, clause.exclude_error_types):
        return PolicyChoice("stop", f"{verdict.error_type} is excluded from restarts")
    missed: list[str] = []
    for guard in clause.guards:
        hit = _hit(guard, incident)
        if (guard.rules and hit is None) or not _follows(guard, incident.scheduler):
            continue
        answer = ask(guard.condition, ConditionFacts(_known(incident, hit), past))
        name = _name(guard, hit)
        if answer.held is None:
            return PolicyChoice("hold", f"{name} asks for a {guard.action}, but {answer.why}", tuple(missed))
        if answer.held:
            action = "stop" if guard.action == "cancel" and not _may_run(incident) else guard.action
            wait = f"; {answer.why}" if answer.not_before_ms else ""
            reason = f"{name} asks for a {guard.action}{f': {guard.reason}' if guard.reason else ''}{wait}"
            return PolicyChoice(action, reason, tuple(missed), answer.not_before_ms)
        missed.append(f"{name} would {guard.action}, but {answer.why}")
    return PolicyChoice(clause.default_action, "nothing in this policy asks for a restart now", tuple(missed))


def _may_run(incident: Incident) -> bool:
    """Whether the attempt may still run: it is silent, and no line and no scheduler reports its end."""
    return incident.silence is not None and not incident.words and incident.scheduler is None


def _hit(guard: Guard, incident: Incident) -> Hit | None:
    """The hit that the guard is about: one of its rules', or the root hit if it names no rules."""
    if guard.rules:
        return next((hit for hit in incident.evidence if hit.rule in guard.rules), None)
    return incident.evidence[0] if incident.evidence and incident.verdict.rule else None


def _name(guard: Guard, hit: Hit | None) -> str:
    if guard.rules and hit is not None:
        return f"the rule {hit.rule}"
    if guard.states:
        return "the change " + " → ".join(state or "any" for state in guard.states)
    return "this policy"


def _known(incident: Incident, hit: Hit | None) -> dict[str, str]:
    """The facts for conditions: those of the hit, else those of the verdict."""
    verdict = incident.verdict
    known = {
        "error_type": verdict.error_type,
        "subsystem": verdict.subsystem,
        "rule": verdict.rule,
        "mode": verdict.mode or "",
    }
    if hit is None:
        return known
    facts = {
        "error_type": hit.error_type,
        "subsystem": hit.subsystem,
        "severity": hit.severity,
        "rule": hit.rule,
    }
    return dict(hit.captures) | known | {key: value for key, value in facts.items() if value}


def _follows(guard: Guard, fact: SchedulerFact | None) -> bool:
    """Whether the scheduler's last change is the one that the guard names."""
    if guard.states is None:
        return True
    if fact is None:
        return False
    old, new = guard.states
    return _was(old, fact) and _is(new, fact)


def _was(old: str | None, fact: SchedulerFact) -> bool:
    # The watcher may have missed the first states, and a start that ended had run.
    if old is None or not fact.old or old in _RUNNING:
        return fact.old.upper() != "PENDING" or old is None
    return fact.old.upper() == old


def _is(new: str | None, fact: SchedulerFact) -> bool:
    if new is None or fact.new.upper() == new:
        return True
    if fact.cluster == "slurm":
        return False
    # Other schedulers name the same ends by other states.
    if new == "CANCELLED":
        return fact.error_type == "cancelled"
    if new == "FAILED":
        return fact.mode in ("crash", None) and fact.error_type != "cancelled"
    return fact.mode == _MODES.get(new)
