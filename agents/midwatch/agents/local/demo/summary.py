"""The demo's report at its end: verdicts, evidence, times, next commands. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from midwatch.agents.local.demo.judge import Fact, TrainingLedger, decided, settled
from midwatch.agents.local.demo.script import Stage
from midwatch.agents.query.timeline import Attempt, Timeline

_EVIDENCE = 3


def report(
    stage: Stage, timeline: Timeline | None, ledger: TrainingLedger, facts: Sequence[Fact], seconds: float
) -> list[str]:
    """The lines of the report."""
    out = [""]
    for attempt in timeline.attempts if timeline else ():
        out += _attempt(attempt)
    out += _times(timeline, ledger)
    out += [f"{'ok  ' if fact.holds else 'FAIL'}  {fact.name} ({fact.detail})" for fact in facts]
    failed = [fact.name for fact in facts if not fact.holds]
    out.append("")
    if failed:
        out.append(f"the demo failed after {seconds:.0f} s: {'; '.join(failed)}")
    else:
        out.append(f"a rescue, a finding and a refusal in {seconds:.0f} s; every fact held")
    return out + _next(stage)


def _attempt(attempt: Attempt) -> list[str]:
    incident = settled(attempt)
    if incident is None:
        return []
    verdict = incident.verdict
    out = [f"attempt {attempt.number}: {verdict.mode} by {verdict.error_type} ({verdict.family})"]
    if verdict.root_line_number is not None:
        out.append(f"  root      {verdict.root_file}:{verdict.root_line_number}")
        out.append(f"            {verdict.root_line.strip()}")
    for hit in incident.evidence[1 : 1 + _EVIDENCE]:
        out.append(f"  evidence  {hit.line.path}:{hit.line.number}  {hit.role} {hit.rule}")
    if len(incident.evidence) > 1 + _EVIDENCE:
        out.append(f"            and {len(incident.evidence) - 1 - _EVIDENCE} more lines")
    decision = decided(attempt, ["restart", "stop", "hold", "none"])
    if decision is not None:
        out.append(f"  decision  {decision.action}: {decision.reason} (policy {decision.policy})")
    if verdict.remedy and (decision is None or decision.action != "restart"):
        out.append(f"  change    {verdict.remedy}")
    return [*out, ""]


def _times(timeline: Timeline | None, ledger: TrainingLedger) -> list[str]:
    first = next((a for a in timeline.attempts if a.number == 1), None) if timeline else None
    incident, decision = settled(first), decided(first, ["restart"])
    if incident is None or decision is None or len(ledger.starts) < 2:  # the demo starts it twice
        return []
    line = incident.evidence[0].line.time if incident.evidence else incident.opened_ms / 1000
    opened, commanded, started = incident.opened_ms / 1000, decision.at_ms / 1000, ledger.starts[1].at
    # PyTorch prints whole seconds only, so the line's time is the end of its second.
    seen = f"{opened - line:.2f} s" if opened >= line else "within its second"
    return [
        f"times     line → incident {seen} → command {commanded - opened:.2f} s"
        f" → new first step {started - commanded:.2f} s",
        "",
    ]


def _next(stage: Stage) -> list[str]:
    return [
        f"  the logs        {stage.logs}",
        f"  the same again  midwatch replay {stage.logs}",
        "  your own run    midwatch up; then: midwatch run -- python train.py",
    ]
