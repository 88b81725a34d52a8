"""The words of a notice: what happened, why, what was done, and the one command to look further. Pure."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence

from midwatch.agents.activity import checkpoint_phrase
from midwatch.agents.messages.alarms import Wording
from midwatch.streams.records import Decision, Finding, Incident, Outcome, SpecEvent, Verdict
from midwatch.streams.settings.kinds import MessageSeverity

HOLDING = ("blind", "two_alive", "poisoned")
"""Findings while which nothing is done for their job."""
_TITLES = {
    "loss_spike": "Loss Spike",
    "node_silent": "a node is silent",
    "blind": "it cannot be watched",
    "two_alive": "two attempts are alive",
    "poisoned": "one of its records cannot be read",
    "checkpoint_ignored": "the checkpoint was not loaded",
}


def of_decision(decision: Decision, incident: Incident | None, related: Sequence[str]) -> Wording:
    """An incident and the decision about it. `related` are findings that belong to it."""
    what = [f"attempt {decision.attempt} of {decision.job}"]
    if incident is not None:
        what = [_what(incident)]
    what += [f"before that: {title}" for title in related]
    return Wording(
        severity=_severity(decision, incident),
        title=f"{decision.job} {_title(decision, incident)}",
        what="; ".join(what),
        why=_why(incident),
        done=_done(decision),
        look=look(decision.job),
    )


def of_finding(finding: Finding) -> Wording:
    """A finding that opened."""
    title = _TITLES.get(finding.kind.partition(":")[0], finding.kind.replace("_", " "))
    holds = finding.kind in HOLDING
    what = _spike(finding.quantities) if finding.kind == "loss_spike" else ""
    return Wording(
        severity="critical" if finding.kind in ("two_alive", "poisoned") else "warning",
        title=f"{finding.job}: {title}",
        what=what or f"{title}, attempt {finding.attempt}",
        why=finding.detail + (f": {finding.lines[0].text}" if finding.lines else ""),
        done=(
            "Nothing is done for the job while this lasts."
            if holds
            else "Nothing: a finding alone ends no job."
        ),
        look=look(finding.job),
    )


def of_hold(decision: Decision) -> Wording:
    """A job that is held although no incident and no finding says why."""
    return Wording(
        severity="critical",
        title=f"{decision.job} is held",
        what=f"midwatch does nothing for attempt {decision.attempt} of {decision.job}",
        why=decision.reason,
        done=_done(decision),
        look=look(decision.job),
    )


def of_spec(spec: SpecEvent) -> Wording:
    """A start under the watch."""
    limit = spec.limits.get("training")
    stall = f"No progress for {span(limit)}" if limit else "No progress"
    return Wording(
        severity="info",
        title=f"{spec.job} is watched",
        what=f"Monitoring: ACTIVE; {'armed' if spec.armed else 'observed only'}, policy {spec.policy}",
        why=f"Messages follow here: Training Stall ({stall}), Loss Spike (>2x moving average), each incident",
        done="Nothing yet.",
        look=look(spec.job),
    )


def of_outcome(outcome: Outcome, at_ms: int) -> str:
    """What a command that was carried out by `at_ms` has brought about."""
    if outcome.action == "cancel":
        return "The job was ended."
    native = f" as {outcome.new_native_id}" if outcome.new_native_id else ""
    checkpoint = checkpoint_phrase(outcome, at_ms)
    return f"The job was started again{native}{', ' if checkpoint else ''}{checkpoint}."


def look(job: str) -> str:
    """The one command to look further."""
    return f"midwatch why {shlex.quote(job)}"


def span(seconds: float) -> str:
    """A duration as people say it."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _severity(decision: Decision, incident: Incident | None) -> MessageSeverity:
    if incident is not None and incident.verdict.state == "healthy":
        return "info"
    if decision.action == "none":
        return "info"
    return "warning" if decision.action in ("restart", "cancel") and decision.command else "critical"


def _title(decision: Decision, incident: Incident | None) -> str:
    if incident is None:
        return f"ended: {decision.action}"
    verdict = incident.verdict
    if verdict.state == "healthy":
        return "ended as it meant to"
    if verdict.mode == "stall":
        return "hangs: Training Stall"
    return f"failed: {verdict.error_type}" if verdict.state == "failed" else "ended, and nothing says why"


def _what(incident: Incident) -> str:
    verdict = incident.verdict
    if verdict.mode == "stall":
        for_ = f" for {span(incident.silence)}" if incident.silence is not None else ""
        return f"Training Stall: No progress{for_}; attempt {incident.attempt}{_place(verdict)}"
    kind = verdict.error_type if verdict.state == "failed" else verdict.state
    mode = f" by {verdict.mode}" if verdict.mode not in (None, "ended") else ""
    return f"attempt {incident.attempt} ended{mode}: {kind}{_place(verdict)}"


def _place(verdict: Verdict) -> str:
    parts = [
        f"node {verdict.node}" if verdict.node else "",
        f"rank {verdict.rank}" if verdict.rank is not None else "",
        f"step {verdict.step}" if verdict.step is not None else "",
        str(verdict.phase) if verdict.phase else "",
    ]
    known = [part for part in parts if part]
    return f" ({', '.join(known)})" if known else ""


def _why(incident: Incident | None) -> str:
    if incident is None:
        return "the verdict of this incident did not reach the messages"
    verdict, fact = incident.verdict, incident.scheduler
    parts = []
    if verdict.root_line:
        number = "" if verdict.root_line_number is None else f":{verdict.root_line_number}"
        place = f" ({verdict.root_file}{number})" if verdict.root_file else ""
        parts.append(f"{verdict.root_line}{place}")
    if fact is not None and not parts:
        code = "" if fact.exit_code is None else f", exit code {fact.exit_code}"
        parts.append(f"the scheduler says {fact.new}{code}{f', {fact.reason}' if fact.reason else ''}")
    if verdict.remedy:
        parts.append(f"remedy: {verdict.remedy}")
    return "; ".join(parts) or "no line and no scheduler says why"


def _done(decision: Decision) -> str:
    limit = "" if decision.restart_limit is None else f" of {decision.restart_limit}"
    number = f" ({decision.restart_number}{limit})" if decision.action == "restart" else ""
    words = {
        "restart": f"A restart{number} is commanded",
        "cancel": "Its end is commanded",
        "hold": "Nothing: the job is held for a person",
        "stop": "Nothing: the job is not started again",
    }
    head = words.get(decision.action, "Nothing")
    if decision.action in ("restart", "cancel") and not decision.command:
        head = f"Nothing: midwatch would {decision.action} it{number}"
    return f"{head}: {decision.reason}"


def _spike(quantities: Mapping[str, str]) -> str:
    loss, usual, step = (quantities.get(name, "") for name in ("loss", "usual", "step"))
    if not (loss and usual):
        return ""
    try:
        times = float(loss) / float(usual)
    except (ValueError, ZeroDivisionError):
        times = math.nan
    ratio = f"{times:.1f}x its moving average" if math.isfinite(times) and times > 2 else "its moving average"
    joined = f"{ratio} of {usual}" if "x" in ratio[:8] else f"{ratio} was {usual}"
    return f"Loss Spike (>2x moving average): the loss is {loss} at step {step}, {joined}"
