"""The output of `midwatch replay`: one JSON object for each job, or lines for a person. Pure.

The JSON object is a contract (`docs/design.md`, Replay says what the stream says).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET

from midwatch.agents.replay.replayed import EarlierStart, Replayed
from midwatch.streams.records import Chance, Hit, Rival, SchedulerFact, Verdict

VERSION = 1
_EVIDENCE_SHOWN = 6
_RIVALS_SHOWN = 6
_MOST_SHOWN = 2000  # characters of the root line


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
        **({"earlier_starts": [_earlier(each) for each in replayed.earlier]} if replayed.earlier else {}),
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
        "classes": [{"like": each.like, "worth": each.worth, "of": each.of} for each in chance.classes],
        **({} if chance.grounds is UNSET else {"grounds": chance.grounds}),
    }


def _earlier(start: EarlierStart) -> dict[str, Any]:
    verdict = start.verdict
    return {
        "file": start.path,
        "first_line": start.first,
        "last_line": start.last,
        "state": verdict.state,
        "mode": verdict.mode,
        "error_type": verdict.error_type,
        "root_line_number": verdict.root_line_number,
    }


def as_table(jobs: Sequence[tuple[Replayed, int]]) -> list[str]:
    """One line for each job, with its number of log lines, below a line of headings."""
    rows = [("JOB", "LINES", "VERDICT", "ROOT", "ACTION")]
    for replayed, lines in jobs:
        verdict = replayed.verdict
        summary = _summary(verdict)
        if replayed.findings and verdict.state != "failed":
            summary += f", {replayed.findings[0].kind}"
        root = f"{verdict.root_file}:{verdict.root_line_number}" if verdict.root_line_number else "-"
        name = replayed.job.removeprefix("replay:file/")
        rows.append((name, f"{lines:,}", summary, root, replayed.decision.action))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def _summary(verdict: Verdict) -> str:
    if verdict.state == "failed":
        return f"failed: {verdict.error_type} ({verdict.family})"
    return verdict.state


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


def _told(fact: SchedulerFact) -> str:
    """The end that the caller told: `slurm 77: NODE_FAIL (NodeDown, exit code 1)`."""
    details = (
        fact.reason,
        f"exit code {fact.exit_code}" if fact.exit_code is not None else "",
        f"signal {fact.signal}" if fact.signal else "",
        f"cancelled by {fact.by_person}" if fact.by_person else "",
    )
    known = ", ".join(filter(None, details))
    name = fact.cluster if fact.native_id == "file" else f"{fact.cluster} {fact.native_id}"
    shown = "" if fact.cluster == "replay" else f"{name}: "
    return f"{shown}{fact.new}" + (f" ({known})" if known else "")


def as_text(replayed: Replayed) -> list[str]:
    """The lines for a person."""
    verdict, decision = replayed.verdict, replayed.decision
    out = [f"{replayed.job}", f"  verdict   {_summary(verdict)}"]
    if verdict.root_line_number is not None:
        rank = f", rank {verdict.rank}" if verdict.rank is not None else ""
        out += [
            f"  root      {verdict.root_file}:{verdict.root_line_number}{rank}",
            f"            {_shown(verdict.root_line.strip())}",
        ]
    if replayed.told is not None:
        out.append(f"  scheduler {_told(replayed.told)}")
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
    for earlier in replayed.earlier:
        out.append(
            f"  earlier   {earlier.path}:{earlier.first}-{earlier.last} {_summary(earlier.verdict)}"
            + (f", line {earlier.verdict.root_line_number}" if earlier.verdict.root_line_number else "")
        )
    out += [f"  assumed   {assumption}" for assumption in replayed.assumed]
    return out


def _shown(line: str) -> str:
    """The line, or as much of it as a terminal should show. `--json` has more of it."""
    return line if len(line) <= _MOST_SHOWN else f"{line[:_MOST_SHOWN]} [...]"
