"""The output of `midwatch replay`: one JSON object for each job, or lines for a person. Pure.

The JSON object is a contract (`docs/design.md`, Replay says what the stream says).
"""

from __future__ import annotations

from typing import Any

from midwatch.agents.replay.job_replay import Replayed
from midwatch.streams.records import Chance, Hit, Rival

VERSION = 1
_EVIDENCE_SHOWN = 6
_RIVALS_SHOWN = 6


def as_plain(replayed: Replayed) -> dict[str, Any]:
    """The JSON object of one job."""
    verdict, decision = replayed.verdict, replayed.decision
    return {
        "version": VERSION,
        "job": replayed.job,
        "assumed": list(replayed.assumed),
        "verdict": {
            "state": verdict.state,
            "mode": verdict.mode,
            "error_type": verdict.error_type,
            "family": verdict.family,
            "subsystem": verdict.subsystem,
            "transient": verdict.transient,
            "root_line": verdict.root_line,
            "root_file": verdict.root_file,
            "root_line_number": verdict.root_line_number,
            "node": verdict.node,
            "rank": verdict.rank,
            "step": verdict.step,
            "remedy": verdict.remedy,
            **({"chance": _chance(verdict.chance)} if verdict.chance else {}),
        },
        "decision": {"action": decision.action, "policy": decision.policy, "reason": decision.reason},
        "findings": [
            {"kind": f.kind, "detail": f.detail, "quantities": dict(f.quantities)} for f in replayed.findings
        ],
        "evidence": [_line(hit) for hit in replayed.evidence],
        "rivals": [_rival(rival) for rival in replayed.rivals],
        "hits": [_line(hit) for hit in replayed.hits],
        **({"hits_not_listed": replayed.unlisted} if replayed.unlisted else {}),
    }


def _chance(chance: Chance) -> dict[str, Any]:
    return {
        "share": chance.share,
        "worth": chance.worth,
        "of": chance.of,
        "like": chance.like,
        "own_passed": chance.own_passed,
        "own": chance.own,
        "outcomes": chance.outcomes,
    }


def _line(hit: Hit) -> dict[str, Any]:
    rank = hit.line.rank if hit.line.rank is not None else hit.line.claimed_rank
    return {
        "rule": hit.rule,
        "role": hit.role,
        "error_type": hit.error_type,
        "file": hit.line.path,
        "line_number": hit.line.number,
        "rank": rank,
        "text": hit.line.text,
        "captures": dict(hit.captures),
    }


def _rival(rival: Rival) -> dict[str, Any]:
    return {
        "rule": rival.rule,
        "file": rival.path,
        "line_number": rival.number,
        "node": rival.node,
        "rank": rival.rank,
        "reason": rival.reason,
        "more": rival.more,
    }


def as_text(replayed: Replayed) -> list[str]:
    """The lines for a person."""
    verdict, decision = replayed.verdict, replayed.decision
    failed = verdict.state == "failed"
    summary = f"failed: {verdict.error_type} ({verdict.family})" if failed else verdict.state
    out = [f"{replayed.job}", f"  verdict   {summary}"]
    if verdict.root_line_number is not None:
        rank = f", rank {verdict.rank}" if verdict.rank is not None else ""
        out += [
            f"  root      {verdict.root_file}:{verdict.root_line_number}{rank}",
            f"            {verdict.root_line.strip()}",
        ]
    if verdict.step is not None:
        out.append(f"  step      {verdict.step} ({verdict.phase})")
    if verdict.quantities:
        out.append("  numbers   " + ", ".join(f"{k} {v}" for k, v in verdict.quantities.items()))
    if verdict.chance:
        out.append(f"  chance    {verdict.chance.share:.0%}: {verdict.chance.sentence}")
    out.append(f"  decision  would {decision.action}: {decision.reason} (policy {decision.policy})")
    if verdict.remedy:
        out.append(f"  remedy    {verdict.remedy}")
    out += [f"  finding   {f.detail}" for f in replayed.findings]
    for hit in replayed.evidence[1 : 1 + _EVIDENCE_SHOWN]:
        out.append(f"  evidence  {hit.line.path}:{hit.line.number} {hit.role} {hit.rule}")
    more = len(replayed.evidence) - 1 - _EVIDENCE_SHOWN
    if more > 0:
        out.append(f"            and {more} more lines")
    for rival in replayed.rivals[:_RIVALS_SHOWN]:
        out.append(f"  not root  {rival.phrase}")
    if (more := len(replayed.rivals) - _RIVALS_SHOWN) > 0:
        out.append(f"            and {more} more candidates; --json lists them")
    out += [f"  assumed   {assumption}" for assumption in replayed.assumed]
    return out
